#include "model/config_reader.h"

#include <fmt/format.h>

#include <cmath>

namespace ashlar {
namespace {

Json ToJson(const GgufValue& value) {
  return std::visit([](const auto& held) { return Json(held); }, value);
}

std::string Brief(const Json& value) {
  std::string text = DumpJson(value);
  return text.size() <= 40 ? text : text.substr(0, 37) + "...";
}

bool IsInteger(const Json& value, int64_t low, int64_t high) {
  if (!value.is_number_integer()) return false;
  if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{1} << 62) return false;
  return value.get<int64_t>() >= low && value.get<int64_t>() <= high;
}

}  // namespace

ConfigReader ConfigReader::Nested(ConfigReader& parent, const Json& object, std::string_view key) {
  ConfigReader nested(object, parent.place_);
  nested.parent_ = &parent;
  nested.prefix_ = fmt::format("{}{}.", parent.prefix_, key);
  return nested;
}

std::string ConfigReader::Place(std::string_view key) const {
  return fmt::format("{} {}{}", place_, prefix_, key);
}

std::optional<Json> ConfigReader::Find(std::string_view key) const {
  if (gguf_ != nullptr) {
    auto entry = gguf_->gguf.find(prefix_ + std::string(key));
    if (entry == gguf_->gguf.end()) return std::nullopt;
    return ToJson(entry->second);
  }
  for (const Json* object : {config_, &defaults_}) {
    if (!object->is_object()) continue;
    auto member = object->find(std::string(key));
    if (member != object->end() && !member->is_null()) return *member;
  }
  return std::nullopt;
}

bool ConfigReader::Has(std::string_view key) const { return Find(key).has_value(); }

void ConfigReader::Refuse(std::string_view key, std::string found, std::string allowed,
                          std::string next) {
  problems().push_back({Place(key), std::move(found), std::move(allowed), std::move(next)});
}

int64_t ConfigReader::Integer(std::string_view key, int64_t low, int64_t high) {
  if (!Has(key)) {
    Refuse(key, "is missing", fmt::format("an integer from {} to {}", low, high),
           "use the model's original files");
    return low;
  }
  return Integer(key, low, high, low);
}

int64_t ConfigReader::Integer(std::string_view key, int64_t low, int64_t high, int64_t fallback) {
  std::optional<Json> value = Find(key);
  if (!value) return fallback;
  if (IsInteger(*value, low, high)) return value->get<int64_t>();
  Refuse(key, Brief(*value), fmt::format("an integer from {} to {}", low, high),
         "use the model's original files");
  return low;
}

int64_t ConfigReader::IntegerOrAuto(std::string_view key, int64_t low, int64_t high,
                                    int64_t automatic) {
  std::optional<Json> value = Find(key);
  return value && *value == "auto" ? automatic : Integer(key, low, high, automatic);
}

double ConfigReader::Number(std::string_view key, double low, double high, double fallback) {
  std::optional<Json> value = Find(key);
  if (!value) return fallback;
  if (value->is_number()) {
    double number = value->get<double>();
    if (std::isfinite(number) && number >= low && number <= high) return number;
  }
  Refuse(key, Brief(*value), fmt::format("a number from {} to {}", low, high),
         "use the model's original files");
  return fallback;
}

bool ConfigReader::Boolean(std::string_view key, bool fallback) {
  std::optional<Json> value = Find(key);
  if (!value) return fallback;
  if (value->is_boolean()) return value->get<bool>();
  Refuse(key, Brief(*value), "true or false", "use the model's original files");
  return fallback;
}

std::string ConfigReader::String(std::string_view key, std::string_view fallback) {
  std::optional<Json> value = Find(key);
  if (!value) return std::string(fallback);
  if (value->is_string()) return value->get<std::string>();
  Refuse(key, Brief(*value), "a string", "use the model's original files");
  return std::string(fallback);
}

std::vector<std::string> ConfigReader::Strings(std::string_view key) {
  std::optional<Json> value = Find(key);
  if (!value) return {};
  std::vector<std::string> strings;
  bool valid = value->is_array();
  for (size_t i = 0; valid && i < value->size(); ++i) {
    valid = (*value)[i].is_string();
    if (valid) strings.push_back((*value)[i].get<std::string>());
  }
  if (!valid) Refuse(key, Brief(*value), "a list of strings", "use the model's original files");
  return strings;
}

std::vector<int64_t> ConfigReader::Integers(std::string_view key, int64_t low, int64_t high) {
  std::optional<Json> value = Find(key);
  if (!value) return {};
  std::vector<int64_t> integers;
  bool valid = value->is_array();
  for (size_t i = 0; valid && i < value->size(); ++i) {
    valid = IsInteger((*value)[i], low, high);
    if (valid) integers.push_back((*value)[i].get<int64_t>());
  }
  if (!valid) {
    Refuse(key, Brief(*value), fmt::format("a list of integers from {} to {}", low, high),
           "use the model's original files");
    return {};
  }
  return integers;
}

std::vector<int64_t> ConfigReader::IntegerForEach(std::string_view key, int64_t low, int64_t high,
                                                  size_t count) {
  std::optional<Json> value = Find(key);
  if (!value || !value->is_array()) return std::vector<int64_t>(count, Integer(key, low, high));
  std::vector<int64_t> integers = Integers(key, low, high);
  if (integers.size() == count) return integers;
  Refuse(key, fmt::format("{} entries", value->size()), fmt::format("{}, one a layer", count),
         "use the model's original files");
  return std::vector<int64_t>(count, low);
}

Json ConfigReader::Object(std::string_view key) {
  std::optional<Json> value = Find(key);
  if (!value) return nullptr;
  if (value->is_object()) return *value;
  Refuse(key, Brief(*value), "an object", "use the model's original files");
  return nullptr;
}

}  // namespace ashlar
