// Rows as JSON: what a captured platform carries from one machine to another.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <limits>
#include <utility>

#include "base/nearest.h"
#include "device/row.h"

namespace ashlar {
namespace {

struct FeatureKey {
  std::string_view name;
  bool AttentionRow::*member;
};
constexpr std::array<FeatureKey, 14> kFeatures = {{
    {"sinks", &AttentionRow::sinks},
    {"window", &AttentionRow::window},
    {"mla", &AttentionRow::mla},
    {"kvConnector", &AttentionRow::kv_connector},
    {"batchInvariant", &AttentionRow::batch_invariant},
    {"nonCausal", &AttentionRow::non_causal},
    {"anyStrides", &AttentionRow::any_strides},
    {"sparse", &AttentionRow::sparse},
    {"mmPrefix", &AttentionRow::mm_prefix},
    {"headScales", &AttentionRow::head_scales},
    {"prefixWindow", &AttentionRow::prefix_window},
    {"pcp", &AttentionRow::pcp},
    {"dcp", &AttentionRow::dcp},
    {"hostQueryLengths", &AttentionRow::host_query_lengths},
}};

constexpr std::array<std::string_view, 4> kUnits = {"any", "cuda", "gfx", "cpu"};
constexpr std::array<std::string_view, 3> kLevels = {"tested", "compile-verified", "planned"};
constexpr std::array<std::string_view, 16> kKeys = {
    "name",         "platform",     "kinds",         "dtypes",         "kvDtypes", "headSizes",
    "headMultiple", "kernelBlocks", "managerBlocks", "preferredBlock", "layouts",  "headSlots",
    "features",     "capability",   "builtFor",      "verification"};

Json Rules(const std::vector<BlockRule>& rules) {
  Json list = Json::array();
  for (const BlockRule& rule : rules) {
    list.push_back({{"tokens", rule.tokens}, {"multiple", rule.multiple}});
  }
  return list;
}

constexpr const char* kNext = "capture the platform again with ashlar probe --capture";
constexpr size_t kShown = 80;  // bytes of a wrong value in a message

std::string Short(std::string text) {
  return text.size() <= kShown ? std::move(text) : text.substr(0, kShown) + "...";
}

// Reads the members of one JSON object and gathers every mistake in it.
class Reader {
 public:
  Reader(const Json& json, std::string place) : json_(json), place_(std::move(place)) {}

  std::string At(std::string_view key) const { return fmt::format("{}.{}", place_, key); }

  void Refuse(std::string_view key, std::string found, std::string allowed) {
    problems_.push_back(
        {At(key.substr(0, kShown)), Short(std::move(found)), std::move(allowed), kNext});
  }

  const Json* Find(std::string_view key) const {
    const auto it = json_.find(std::string(key));
    return it == json_.end() ? nullptr : &*it;
  }

  void Require(std::string_view key) {
    if (Find(key) == nullptr) Refuse(key, "missing", "a value");
  }

  void Text(std::string_view key, std::string& out) {
    const Json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_string() || value->get_ref<const std::string&>().empty()) {
      return Refuse(key, DumpJson(*value), "a string");
    }
    out = value->get<std::string>();
  }

  template <std::integral T>
  void Number(std::string_view key, T& out) {
    if (const Json* value = Find(key)) Number(key, *value, out);
  }

  template <std::integral T>
  bool Number(std::string_view key, const Json& value, T& out) {
    const int64_t top = std::numeric_limits<T>::max();
    const auto within = [&](auto number) {
      return std::cmp_greater_equal(number, 0) && std::cmp_less_equal(number, top);
    };
    const bool fits = value.is_number_unsigned()  ? within(value.get<uint64_t>())
                      : value.is_number_integer() ? within(value.get<int64_t>())
                                                  : false;
    if (!fits) {
      Refuse(key, DumpJson(value), fmt::format("a whole number from 0 to {}", top));
      return false;
    }
    out = value.get<T>();
    return true;
  }

  // Calls `read` for each element of an array.
  template <class Read>
  void Each(std::string_view key, Read read) {
    const Json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_array()) return Refuse(key, DumpJson(*value), "a list");
    for (const Json& element : *value) read(element);
  }

  // A list of names, each turned into a value by `parse`.
  template <class T, class Parse>
  void Names(std::string_view key, std::vector<T>& out, Parse parse) {
    Each(key, [&](const Json& element) {
      const auto parsed = element.is_string() ? parse(element.get_ref<const std::string&>())
                                              : decltype(parse(std::string_view())){};
      if (!parsed) return Refuse(key, DumpJson(element), "a known name");
      out.push_back(*parsed);
    });
  }

  void BlockRules(std::string_view key, std::vector<BlockRule>& out) {
    Each(key, [&](const Json& element) {
      BlockRule rule;
      const auto multiple = element.is_object() ? element.find("multiple") : element.end();
      if (!element.is_object() || element.size() != 2 || !element.contains("tokens") ||
          multiple == element.end() || !multiple->is_boolean()) {
        return Refuse(key, DumpJson(element), "{\"tokens\": N, \"multiple\": true or false}");
      }
      if (!Number(key, element["tokens"], rule.tokens)) return;
      if (rule.tokens == 0) return Refuse(key, "0 tokens", "1 or more");
      rule.multiple = multiple->get<bool>();
      out.push_back(rule);
    });
  }

  template <class Enum, size_t N>
  void OneName(std::string_view key, const std::array<std::string_view, N>& names, Enum& out) {
    const Json* value = Find(key);
    if (value == nullptr) return;
    for (size_t i = 0; i < N; ++i) {
      if (value->is_string() && value->get_ref<const std::string&>() == names[i]) {
        out = static_cast<Enum>(i);
        return;
      }
    }
    Refuse(key, DumpJson(*value), OneOf(std::vector<std::string>(names.begin(), names.end())));
  }

  Problems& problems() { return problems_; }

 private:
  const Json& json_;
  std::string place_;
  Problems problems_;
};

void ReadCapability(Reader& reader, AttentionRow& row) {
  const Json* value = reader.Find("capability");
  if (value == nullptr) return;
  if (!value->is_object()) return reader.Refuse("capability", DumpJson(*value), "an object");
  Reader inner(*value, reader.At("capability"));
  inner.OneName("unit", kUnits, row.capability_unit);
  inner.Number("min", row.capability_min);
  inner.Number("max", row.capability_max);
  for (Problem& problem : inner.problems()) reader.problems().push_back(std::move(problem));
}

void ReadFeatures(Reader& reader, AttentionRow& row) {
  reader.Each("features", [&](const Json& element) {
    for (const FeatureKey& feature : kFeatures) {
      if (element.is_string() && element.get_ref<const std::string&>() == feature.name) {
        row.*feature.member = true;
        return;
      }
    }
    reader.Refuse("features", DumpJson(element), "a known feature");
  });
}

void RefuseUnknownKeys(Reader& reader, const Json& json) {
  const std::vector<std::string> keys(kKeys.begin(), kKeys.end());
  for (const auto& item : json.items()) {
    if (std::find(kKeys.begin(), kKeys.end(), item.key()) != kKeys.end()) continue;
    const std::string near = Nearest(item.key(), keys);
    reader.Refuse(item.key(), "unknown key", near.empty() ? OneOf(keys) : fmt::format("{}?", near));
  }
}

}  // namespace

Json ToJson(const AttentionRow& row) {
  Json json;
  const auto names = [](const auto& values, auto name) {
    Json list = Json::array();
    for (const auto& value : values) list.push_back(std::string(name(value)));
    return list;
  };
  json["name"] = row.name;
  json["platform"] = row.platform;
  json["kinds"] = names(row.kinds, [](KvKind kind) { return Name(kind); });
  json["dtypes"] = names(row.dtypes, [](DType type) { return Info(type).name; });
  json["kvDtypes"] = names(row.kv_dtypes, [](DType type) { return Info(type).name; });
  json["headSizes"] = row.head_sizes;
  json["headMultiple"] = row.head_multiple;
  json["kernelBlocks"] = Rules(row.kernel_blocks);
  json["managerBlocks"] = Rules(row.manager_blocks);
  json["preferredBlock"] = row.preferred_block;
  json["layouts"] = names(row.layouts, [](KvLayout layout) { return Name(layout); });
  json["headSlots"] = row.head_slots;
  Json features = Json::array();
  for (const FeatureKey& feature : kFeatures) {
    if (row.*feature.member) features.push_back(std::string(feature.name));
  }
  json["features"] = std::move(features);
  json["capability"] = {{"unit", std::string(kUnits.at(static_cast<size_t>(row.capability_unit)))},
                        {"min", row.capability_min},
                        {"max", row.capability_max}};
  json["builtFor"] = row.built_for;
  json["verification"] = std::string(Name(row.verification));
  return json;
}

Result<AttentionRow> AttentionRowFromJson(const Json& json, std::string_view place) {
  if (!json.is_object()) {
    return Problem{std::string(place), Short(DumpJson(json)), "an attention row (an object)",
                   kNext};
  }
  AttentionRow row;
  Reader reader(json, std::string(place));
  RefuseUnknownKeys(reader, json);
  for (std::string_view key : {"name", "platform", "kinds", "dtypes", "kvDtypes", "kernelBlocks"}) {
    reader.Require(key);
  }
  reader.Text("name", row.name);
  reader.Text("platform", row.platform);
  reader.Names("kinds", row.kinds, ParseKvKind);
  reader.Names("dtypes", row.dtypes, ParseDType);
  reader.Names("kvDtypes", row.kv_dtypes, ParseDType);
  reader.Each("headSizes", [&](const Json& element) {
    int size = 0;
    if (reader.Number("headSizes", element, size)) row.head_sizes.push_back(size);
  });
  reader.Number("headMultiple", row.head_multiple);
  if (row.head_multiple == 0) reader.Refuse("headMultiple", "0", "1 or more");
  reader.BlockRules("kernelBlocks", row.kernel_blocks);
  reader.BlockRules("managerBlocks", row.manager_blocks);
  reader.Number("preferredBlock", row.preferred_block);
  reader.Names("layouts", row.layouts, ParseKvLayout);
  reader.Number("headSlots", row.head_slots);
  ReadFeatures(reader, row);
  ReadCapability(reader, row);
  reader.Names("builtFor", row.built_for,
               [](std::string_view name) { return std::optional<std::string>(name); });
  reader.OneName("verification", kLevels, row.verification);
  if (!reader.problems().empty()) return std::move(reader.problems());
  return row;
}

}  // namespace ashlar
