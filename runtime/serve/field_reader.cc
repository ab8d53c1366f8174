#include "serve/field_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "base/nearest.h"

namespace ashlar {
namespace {

std::string TypeName(const Json& value) {
  if (value.is_number_integer()) return "an integer";
  if (value.is_number()) return "a number";
  if (value.is_boolean()) return "a boolean";
  if (value.is_string()) return "a string";
  if (value.is_array()) return "an array";
  return value.is_object() ? "an object" : "null";
}

}  // namespace

std::string Quoted(const Json& value) {
  if (value.is_array() || value.is_object()) return TypeName(value);
  std::string text = DumpJson(value);
  return text.size() <= 60 ? text : text.substr(0, 60) + "...";
}

const Json* FieldReader::Find(std::string_view name) {
  known_.emplace(name);
  auto member = object_.find(name);
  return member == object_.end() || member->is_null() ? nullptr : &*member;
}

void FieldReader::Fail(ErrorCode code, std::string_view name, std::string found,
                       std::string allowed, std::string next) {
  Keep(code, {Path(name), std::move(found), std::move(allowed), std::move(next)});
}

void FieldReader::Keep(ErrorCode code, const Problem& problem) {
  if (!error_) {
    error_ = ApiError{code, problem};
    return;
  }
  auto same_place = [&](const Problem& other) { return other.place == problem.place; };
  bool known = same_place(error_->problem) || std::ranges::any_of(error_->more, same_place);
  if (!known && !full()) error_->more.push_back(problem);
}

void FieldReader::Adopt(const FieldReader& part) {
  if (!part.failed()) return;
  Keep(part.error_->code, part.error_->problem);
  for (const Problem& problem : part.error_->more) Keep(part.error_->code, problem);
}

std::optional<int64_t> FieldReader::Integer(std::string_view name, int64_t low, int64_t high) {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  std::string allowed = fmt::format("an integer from {} to {}", low, high);
  if (!value->is_number_integer()) {
    Fail(ErrorCode::kInvalidType, name, Quoted(*value) + " is no integer", allowed,
         "send a JSON integer");
    return std::nullopt;
  }
  bool fits = !value->is_number_unsigned() ||
              value->get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (!fits || value->get<int64_t>() < low || value->get<int64_t>() > high) {
    Fail(ErrorCode::kInvalidValue, name, Quoted(*value) + " is out of range", allowed,
         "choose one of these or leave it out");
    return std::nullopt;
  }
  return value->get<int64_t>();
}

std::optional<double> FieldReader::Number(std::string_view name, double low, double high,
                                          bool above_low) {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  std::string allowed =
      fmt::format("a number {} {} and at most {}", above_low ? "above" : "of at least", low, high);
  if (!value->is_number()) {
    Fail(ErrorCode::kInvalidType, name, Quoted(*value) + " is no number", allowed,
         "send a JSON number");
    return std::nullopt;
  }
  double number = value->get<double>();
  if (!(number >= low && number <= high) || (above_low && number == low)) {
    Fail(ErrorCode::kInvalidValue, name, Quoted(*value) + " is out of range", allowed,
         "choose one of these or leave it out");
    return std::nullopt;
  }
  return number;
}

std::optional<bool> FieldReader::Boolean(std::string_view name) {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) {
    Fail(ErrorCode::kInvalidType, name, Quoted(*value) + " is no boolean", "true or false",
         "send one of these or leave it out");
    return std::nullopt;
  }
  return value->get<bool>();
}

std::optional<std::string> FieldReader::String(std::string_view name, size_t most_bytes) {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  std::string allowed = fmt::format("a string of at most {} bytes", most_bytes);
  if (!value->is_string()) {
    Fail(ErrorCode::kInvalidType, name, Quoted(*value) + " is no string", allowed,
         "send a JSON string");
    return std::nullopt;
  }
  const std::string& text = value->get_ref<const std::string&>();
  if (text.size() > most_bytes) {
    Fail(ErrorCode::kInvalidValue, name, fmt::format("{} bytes", text.size()), allowed,
         "shorten it");
    return std::nullopt;
  }
  return text;
}

void FieldReader::RefuseUnknown(const std::set<std::string_view>& also) {
  for (const auto& [name, value] : object_.items()) {
    if (full()) return;
    if (known_.contains(name) || also.contains(name)) continue;
    std::vector<std::string> names(known_.begin(), known_.end());
    std::string nearest = Nearest(name, names);
    Fail(ErrorCode::kUnknownField, name.substr(0, 64), "no field has this name",
         "the fields that docs/api.md lists",
         nearest.empty() ? "leave it out" : "did you mean " + nearest + "?");
  }
}

}  // namespace ashlar
