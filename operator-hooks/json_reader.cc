#include "operator-hooks/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/nearest.h"
#include "operator-hooks/json_writer.h"

namespace ashlar::hooks {
namespace {

using simdjson::dom::element_type;

// A body with more mistakes than these is no longer told in full.
constexpr size_t kMaxProblems = 20;

std::string_view TypeName(JsonElement value) {
  switch (value.type()) {
    case element_type::ARRAY:
      return "a list";
    case element_type::OBJECT:
      return "an object";
    case element_type::STRING:
      return "a text";
    case element_type::BOOL:
      return "a boolean";
    case element_type::NULL_VALUE:
      return "null";
    default:
      return "a number";
  }
}

std::string NumberText(double value) {
  char buffer[32];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return std::string(buffer, end);
}

using Members = std::vector<std::pair<std::string_view, JsonElement>>;

Members Sorted(JsonElement object) {
  Members members;
  for (auto [key, member] : simdjson::dom::object(object)) members.emplace_back(key, member);
  std::stable_sort(members.begin(), members.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  return members;
}

void Write(JsonElement value, JsonWriter& out);

void WriteMembers(JsonElement object, std::span<const std::string_view> without, JsonWriter& out) {
  for (const auto& [key, member] : Sorted(object)) {
    if (std::find(without.begin(), without.end(), key) != without.end()) continue;
    out.Member(key);
    Write(member, out);
  }
}

void Write(JsonElement value, JsonWriter& out) {
  switch (value.type()) {
    case element_type::ARRAY:
      out.Array([&] {
        for (JsonElement item : simdjson::dom::array(value)) Write(item, out);
      });
      return;
    case element_type::OBJECT:
      out.Object([&] { WriteMembers(value, {}, out); });
      return;
    case element_type::STRING:
      out.Item(std::string_view(value));
      return;
    case element_type::BOOL:
      out.RawItem(bool(value) ? "true" : "false");
      return;
    case element_type::INT64:
      out.Item(int64_t(value));
      return;
    case element_type::UINT64:
      out.RawItem(std::to_string(uint64_t(value)));
      return;
    case element_type::DOUBLE:
      out.RawItem(NumberText(double(value)));
      return;
    case element_type::NULL_VALUE:
      out.RawItem("null");
      return;
  }
}

std::string Quoted(std::string_view text) { return fmt::format("\"{}\"", text.substr(0, 80)); }

}  // namespace

Result<JsonElement> JsonParser::Parse(std::string_view text, std::string_view place) {
  JsonElement value;
  simdjson::error_code error = parser_.parse(text.data(), text.size()).get(value);
  if (error != simdjson::SUCCESS) {
    return Problem{std::string(place), simdjson::error_message(error), "one JSON value in UTF-8",
                   "send the body as Metacontroller does"};
  }
  return value;
}

std::string CanonicalText(JsonElement value) {
  JsonWriter out;
  Write(value, out);
  return out.Take();
}

ObjectReader::ObjectReader(JsonElement value, std::string path, Problems& problems)
    : path_(std::move(path)), problems_(&problems) {
  if (value.is_object()) {
    object_ = value;
  } else {
    WrongType("", value, "an object");
  }
}

ObjectReader ObjectReader::Empty(std::string path, Problems& problems) {
  return ObjectReader(std::move(path), &problems);
}

std::optional<JsonElement> ObjectReader::Find(std::string_view key) const {
  JsonElement value;
  if (!object_ || object_->at_key(key).get(value) != simdjson::SUCCESS || value.is_null())
    return std::nullopt;
  return value;
}

std::string ObjectReader::At(std::string_view key) const {
  if (key.empty()) return path_;
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

void ObjectReader::Refuse(std::string_view key, std::string found, std::string allowed,
                          std::string next) const {
  if (problems_->size() >= kMaxProblems) return;
  problems_->push_back({At(key), std::move(found), std::move(allowed), std::move(next)});
}

void ObjectReader::WrongType(std::string_view key, JsonElement value,
                             std::string_view wanted) const {
  Refuse(key, std::string(TypeName(value)), std::string(wanted), fmt::format("make it {}", wanted));
}

// The value of `key` as what it must be; empty, with a Problem unless it is absent, when it is not.
template <class Wanted>
std::optional<Wanted> ObjectReader::As(std::string_view key, std::string_view wanted) const {
  std::optional<JsonElement> value = Find(key);
  Wanted result;
  if (!value) return std::nullopt;
  if (value->get(result) == simdjson::SUCCESS) return result;
  WrongType(key, *value, wanted);
  return std::nullopt;
}

std::string ObjectReader::Text(std::string_view key, std::string_view fallback) const {
  return std::string(As<std::string_view>(key, "a text").value_or(fallback));
}

bool ObjectReader::Flag(std::string_view key, bool fallback) const {
  return As<bool>(key, "true or false").value_or(fallback);
}

std::string ObjectReader::Word(std::string_view key, std::span<const std::string_view> words,
                               std::string_view fallback) const {
  std::string text = Text(key, fallback);
  if (text == fallback || std::find(words.begin(), words.end(), text) != words.end()) return text;
  std::vector<std::string> allowed(words.begin(), words.end());
  std::string nearest = Nearest(text, allowed);
  Refuse(key, Quoted(text), OneOf(allowed),
         nearest.empty() ? "write one of these" : fmt::format("did you mean {}?", nearest));
  return std::string(fallback);
}

int64_t ObjectReader::Integer(std::string_view key, int64_t min, int64_t max,
                              int64_t fallback) const {
  std::optional<int64_t> number = As<int64_t>(key, "an integer");
  if (!number) return fallback;
  if (*number >= min && *number <= max) return *number;
  Refuse(key, std::to_string(*number), fmt::format("an integer from {} to {}", min, max),
         "write a number in that range");
  return fallback;
}

std::vector<std::string> ObjectReader::Texts(std::string_view key) const {
  std::optional<simdjson::dom::array> list = As<simdjson::dom::array>(key, "a list of texts");
  if (!list) return {};
  std::vector<std::string> texts;
  for (JsonElement item : *list) {
    std::string_view text;
    if (item.get(text) != simdjson::SUCCESS) {
      WrongType(fmt::format("{}[{}]", key, texts.size()), item, "a text");
      return {};
    }
    texts.emplace_back(text);
  }
  return texts;
}

std::vector<int64_t> ObjectReader::Integers(std::string_view key, int64_t min, int64_t max) const {
  std::optional<simdjson::dom::array> list = As<simdjson::dom::array>(key, "a list of integers");
  if (!list) return {};
  std::vector<int64_t> numbers;
  for (JsonElement item : *list) {
    int64_t number = 0;
    if (item.get(number) != simdjson::SUCCESS || number < min || number > max) {
      Refuse(fmt::format("{}[{}]", key, numbers.size()), CanonicalText(item),
             fmt::format("an integer from {} to {}", min, max), "write a number in that range");
      return {};
    }
    numbers.push_back(number);
  }
  return numbers;
}

std::map<std::string, std::string> ObjectReader::TextMap(std::string_view key,
                                                         bool quantities) const {
  std::optional<simdjson::dom::object> object =
      As<simdjson::dom::object>(key, "an object of texts");
  if (!object) return {};
  std::map<std::string, std::string> texts;
  for (auto [name, member] : *object) {
    std::string_view text;
    if (member.get(text) == simdjson::SUCCESS) {
      texts.emplace(name, text);
    } else if (quantities && member.is_int64()) {
      texts.emplace(name, CanonicalText(member));
    } else {
      WrongType(fmt::format("{}.{}", key, name), member, quantities ? "a quantity" : "a text");
    }
  }
  return texts;
}

ObjectReader ObjectReader::Object(std::string_view key) const {
  std::optional<JsonElement> value = Find(key);
  return value ? ObjectReader(*value, At(key), *problems_) : Empty(At(key), *problems_);
}

std::vector<ObjectReader> ObjectReader::Objects(std::string_view key) const {
  std::optional<simdjson::dom::array> list = As<simdjson::dom::array>(key, "a list of objects");
  if (!list) return {};
  std::vector<ObjectReader> objects;
  for (JsonElement item : *list)
    objects.emplace_back(item, fmt::format("{}[{}]", At(key), objects.size()), *problems_);
  return objects;
}

std::vector<std::pair<std::string, ObjectReader>> ObjectReader::Members(
    std::string_view key) const {
  std::vector<std::pair<std::string, ObjectReader>> members;
  ObjectReader parent = Object(key);
  if (!parent.object_) return members;
  for (const auto& [name, member] : Sorted(*parent.object_))
    members.emplace_back(std::string(name), ObjectReader(member, parent.At(name), *problems_));
  return members;
}

std::string ObjectReader::Raw(std::string_view key) const {
  std::optional<JsonElement> value = Find(key);
  return value ? CanonicalText(*value) : "";
}

std::string ObjectReader::RawObject(std::string_view key) const {
  return As<simdjson::dom::object>(key, "an object") ? Raw(key) : "";
}

std::string ObjectReader::RawList(std::string_view key) const {
  return As<simdjson::dom::array>(key, "a list") ? Raw(key) : "";
}

std::string ObjectReader::RawWithout(std::span<const std::string_view> keys) const {
  JsonWriter out;
  out.Object([&] {
    if (object_) WriteMembers(*object_, keys, out);
  });
  return out.Take();
}

}  // namespace ashlar::hooks
