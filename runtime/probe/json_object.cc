#include "probe/json_object.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/nearest.h"

namespace ashlar {
namespace {

constexpr size_t kShown = 80;  // bytes of a wrong value in a message

std::string Shown(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  std::string text = DumpJson(value);
  return text.size() <= kShown ? text : text.substr(0, kShown) + "...";
}

const Json& EmptyList() {
  static const Json list = Json::array();
  return list;
}

}  // namespace

JsonObject::JsonObject(const Json& json, std::string place, std::span<const std::string_view> keys,
                       Problems& problems)
    : json_(json), place_(std::move(place)), problems_(problems) {
  if (!json.is_object()) {
    problems_.push_back({place_, Shown(json), "an object",
                         "capture the platform again with ashlar probe --capture"});
    return;
  }
  const std::vector<std::string> known(keys.begin(), keys.end());
  for (const auto& [key, value] : json.items()) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    std::string nearest = Nearest(key, known);
    Refuse(key.substr(0, kShown), "unknown key", nearest.empty() ? OneOf(known) : nearest);
  }
  for (std::string_view key : keys) {
    if (!json.contains(std::string(key))) Refuse(key, "missing", "a value");
  }
}

std::string JsonObject::At(std::string_view key) const { return fmt::format("{}.{}", place_, key); }

void JsonObject::Refuse(std::string_view key, std::string found, std::string allowed) {
  if (problems_.size() >= kMostProblems) return;
  problems_.push_back({At(key), std::move(found), std::move(allowed),
                       "capture the platform again with ashlar probe --capture"});
}

const Json* JsonObject::Find(std::string_view key) const {
  if (!json_.is_object()) return nullptr;
  auto found = json_.find(std::string(key));
  return found == json_.end() ? nullptr : &*found;
}

std::string JsonObject::Text(std::string_view key) {
  const Json* value = Find(key);
  if (value == nullptr) return "";
  if (value->is_string()) return value->get<std::string>();
  Refuse(key, Shown(*value), "a string");
  return "";
}

std::string JsonObject::Word(std::string_view key, std::span<const std::string> words) {
  const Json* value = Find(key);
  if (value == nullptr) return "";
  if (value->is_string()) {
    std::string text = value->get<std::string>();
    if (std::find(words.begin(), words.end(), text) != words.end()) return text;
  }
  Refuse(key, Shown(*value), OneOf(words));
  return "";
}

int64_t JsonObject::Number(std::string_view key, int64_t max) {
  const Json* value = Find(key);
  if (value == nullptr) return 0;
  bool fits = value->is_number_unsigned() && value->get<uint64_t>() <= static_cast<uint64_t>(max);
  if (value->is_number_integer() && !value->is_number_unsigned())
    fits = value->get<int64_t>() >= 0 && value->get<int64_t>() <= max;
  if (fits) return value->get<int64_t>();
  Refuse(key, Shown(*value), fmt::format("a whole number from 0 to {}", max));
  return 0;
}

const Json& JsonObject::List(std::string_view key) {
  const Json* value = Find(key);
  if (value == nullptr) return EmptyList();
  if (value->is_array()) return *value;
  Refuse(key, Shown(*value), "a list");
  return EmptyList();
}

std::vector<std::string> JsonObject::Texts(std::string_view key) {
  std::vector<std::string> texts;
  for (const Json& item : List(key)) {
    if (item.is_string())
      texts.push_back(item.get<std::string>());
    else
      Refuse(key, Shown(item), "a list of strings");
  }
  return texts;
}

}  // namespace ashlar
