#include "plan/wish.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/nearest.h"
#include "plan/select.h"

namespace ashlar {
namespace {

bool Contains(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// "auto", in any case: nothing is forced.
bool IsAuto(std::string_view word) {
  constexpr std::string_view kAuto = "auto";
  return std::equal(word.begin(), word.end(), kAuto.begin(), kAuto.end(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == b;
  });
}

Problem UnknownRow(const Origins& origins, const std::string& field, const std::string& name,
                   const std::vector<std::string>& known) {
  std::string nearest = Nearest(name, known);
  return {origins.Place(field), fmt::format("\"{}\" is no attention backend", name), OneOf(known),
          nearest.empty() ? "name one of these" : "did you mean " + nearest + "?"};
}

}  // namespace

Wish WishFor(const Spec& spec, const std::string& group, KvKind kind) {
  Wish wish;
  for (const std::string& key : {group, std::string(Name(kind)), std::string("default")}) {
    auto entry = spec.backends.find(key);
    if (entry == spec.backends.end()) continue;
    const BackendChoice& choice = entry->second;
    if (wish.use.empty() && !choice.use.empty() && !IsAuto(choice.use)) {
      wish.use = choice.use;
      wish.use_field = fmt::format("backends.{}.use", key);
    }
    if (wish.prefer.empty() && !choice.prefer.empty()) {
      wish.prefer = choice.prefer;
      wish.prefer_field = fmt::format("backends.{}.prefer", key);
    }
    if (wish.forbid.empty() && !choice.forbid.empty()) {
      wish.forbid = choice.forbid;
      wish.forbid_field = fmt::format("backends.{}.forbid", key);
    }
  }
  return wish;
}

Problems CheckWishes(const Spec& spec, const Catalogue& catalogue,
                     const std::vector<KvGroup>& groups) {
  std::vector<std::string> known;
  for (const AttentionRow& row : catalogue.rows) known.push_back(row.name);
  std::sort(known.begin(), known.end());
  std::vector<std::string> keys = {"default"};
  for (const KvGroup& group : groups) keys.push_back(group.name);

  Problems problems;
  for (const auto& [key, choice] : spec.backends) {
    std::string field = "backends." + key;
    if (!Contains(keys, key) && !ParseKvKind(key)) {
      std::string nearest = Nearest(key, keys);
      problems.push_back({spec.origins.Place(field),
                          fmt::format("\"{}\" is no KV group of this model", key), OneOf(keys),
                          nearest.empty() ? "name one of these" : "did you mean " + nearest + "?"});
    }
    auto check = [&](const std::string& name, const std::string& part) {
      if (!Contains(known, name))
        problems.push_back(UnknownRow(spec.origins, field + part, name, known));
    };
    if (!choice.use.empty() && !IsAuto(choice.use)) check(choice.use, ".use");
    for (const std::string& name : choice.prefer) check(name, ".prefer");
    for (const std::string& name : choice.forbid) check(name, ".forbid");
  }
  return problems;
}

}  // namespace ashlar
