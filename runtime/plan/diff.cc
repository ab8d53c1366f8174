#include "plan/diff.h"

#include <algorithm>
#include <array>

namespace ashlar {
namespace {

using Class = PlanChange::Class;

// Members that decide for all below them; every other member is an amount.
struct MemberClass {
  std::string_view member;
  Class kind;
};
constexpr std::array<MemberClass, 19> kMembers = {{
    {"layout", Class::kContract},
    {"numerics", Class::kContract},
    {"quantization", Class::kContract},
    {"hashBlockSize", Class::kContract},
    {"kind", Class::kContract},
    {"window", Class::kContract},
    {"layers", Class::kContract},
    {"dtype", Class::kContract},
    {"kvHeads", Class::kContract},
    {"headDim", Class::kContract},
    {"headDimV", Class::kContract},
    {"blockSize", Class::kContract},
    {"kernelBlockSize", Class::kContract},
    {"page", Class::kContract},
    {"hash", Class::kContract},
    {"backend", Class::kChoice},
    {"requestedBackend", Class::kChoice},
    {"candidates", Class::kChoice},
    {"platform", Class::kChoice},
}};

Class ClassOf(std::string_view member, Class around) {
  if (around != Class::kAmount) return around;
  auto at = std::find_if(kMembers.begin(), kMembers.end(),
                         [&](const MemberClass& row) { return row.member == member; });
  return at == kMembers.end() ? Class::kAmount : at->kind;
}

// What an item of a list is known by; an attention group by its place, for its backend may change.
std::string KeyOf(const Json& item) {
  if (item.is_object() && item.contains("candidates") && item.contains("index"))
    return DumpJson(item["index"]);
  for (const char* key : {"name", "backend", "stage", "reason"}) {
    if (item.is_object() && item.contains(key) && item[key].is_string())
      return item[key].get<std::string>();
  }
  return "";
}

bool Keyed(const Json& list) {
  return list.is_array() && !list.empty() &&
         std::all_of(list.begin(), list.end(), [](const Json& item) { return item.is_object(); });
}

class Differ {
 public:
  void Compare(const Json* from, const Json* to, const std::string& path, Class kind) {
    if (from != nullptr && to != nullptr && *from == *to) return;
    if (from != nullptr && to != nullptr) {
      if (from->is_object() && to->is_object()) return Members(*from, *to, path, kind);
      if (Keyed(*from) && Keyed(*to)) return Items(*from, *to, path, kind);
    }
    changes_.push_back(
        {kind, path, from == nullptr ? "" : DumpJson(*from), to == nullptr ? "" : DumpJson(*to)});
  }
  std::vector<PlanChange> Take() { return std::move(changes_); }

 private:
  static const Json* Find(const Json& object, const std::string& key) {
    auto at = object.find(key);
    return at == object.end() ? nullptr : &*at;
  }
  void Members(const Json& from, const Json& to, const std::string& path, Class kind) {
    auto compare = [&](const std::string& key) {
      Compare(Find(from, key), Find(to, key), path.empty() ? key : path + "." + key,
              ClassOf(key, kind));
    };
    for (const auto& [key, member] : from.items()) compare(key);
    for (const auto& [key, member] : to.items()) {
      if (!from.contains(key)) compare(key);
    }
  }
  // Items of the same key in their order: the n-th of one with the n-th of the other.
  void Items(const Json& from, const Json& to, const std::string& path, Class kind) {
    std::vector<bool> taken(to.size());
    for (size_t i = 0; i < from.size(); ++i) {
      std::string key = KeyOf(from[i]);
      const Json* match = nullptr;
      for (size_t j = 0; j < to.size() && match == nullptr; ++j) {
        if (taken[j] || KeyOf(to[j]) != key) continue;
        taken[j] = true;
        match = &to[j];
      }
      Compare(&from[i], match, path + "[" + (key.empty() ? std::to_string(i) : key) + "]",
              match == nullptr ? WholeItem(path, kind) : kind);
    }
    for (size_t j = 0; j < to.size(); ++j) {
      std::string key = KeyOf(to[j]);
      if (!taken[j])
        Compare(nullptr, &to[j], path + "[" + (key.empty() ? std::to_string(j) : key) + "]",
                WholeItem(path, kind));
    }
  }
  // A group that only one plan has is no amount.
  static Class WholeItem(const std::string& path, Class kind) {
    return path.ends_with("kvGroups") || path.ends_with("attention") ? Class::kContract : kind;
  }

  std::vector<PlanChange> changes_;
};

}  // namespace

std::string_view Name(Class kind) {
  switch (kind) {
    case Class::kContract:
      return "contract";
    case Class::kChoice:
      return "choice";
    case Class::kAmount:
      return "amount";
  }
  return "";
}

std::vector<PlanChange> DiffPlans(const Json& from, const Json& to) {
  Differ differ;
  differ.Compare(&from, &to, "", Class::kAmount);
  return differ.Take();
}

}  // namespace ashlar
