// Strict reading of JSON objects from outside: a value of another type than asked for is a Problem
// with its path, never a guess.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.h"
#include "base/result.h"

namespace ashlar::hooks {

using JsonElement = simdjson::dom::element;

// A parsed text and the memory that it lies in. Elements of it live as long as it does; the next
// Parse ends them. Used by one thread.
class JsonParser {
 public:
  // Refuses what is not exactly one JSON value in UTF-8. `place` opens the message.
  Result<JsonElement> Parse(std::string_view text, std::string_view place);

 private:
  simdjson::dom::parser parser_;
};

// The value as JSON text with sorted keys and shortest numbers.
std::string CanonicalText(JsonElement value);

// Reads the members of one object. An absent or null member yields the fallback; each wrong one
// adds a Problem and yields the fallback too.
class ObjectReader {
 public:
  // `value` may be anything: what is no object adds a Problem and reads as an empty one.
  ObjectReader(JsonElement value, std::string path, Problems& problems);
  static ObjectReader Empty(std::string path, Problems& problems);

  bool Has(std::string_view key) const { return Find(key).has_value(); }
  std::string Text(std::string_view key, std::string_view fallback = "") const;
  // One of `words`.
  std::string Word(std::string_view key, std::span<const std::string_view> words,
                   std::string_view fallback) const;
  int64_t Integer(std::string_view key, int64_t min, int64_t max, int64_t fallback) const;
  bool Flag(std::string_view key, bool fallback) const;
  std::vector<std::string> Texts(std::string_view key) const;
  std::vector<int64_t> Integers(std::string_view key, int64_t min, int64_t max) const;
  // With `quantities`, integers count as their text: `cpu: 2`.
  std::map<std::string, std::string> TextMap(std::string_view key, bool quantities = false) const;
  // An object; an absent one reads as empty.
  ObjectReader Object(std::string_view key) const;
  // The objects of a list.
  std::vector<ObjectReader> Objects(std::string_view key) const;
  // Each member of an object that is an object itself, in the order of the keys' bytes.
  std::vector<std::pair<std::string, ObjectReader>> Members(std::string_view key) const;
  // Canonical text of whatever stands there; "" when nothing does.
  std::string Raw(std::string_view key) const;
  // The same, which must be an object or a list.
  std::string RawObject(std::string_view key) const;
  std::string RawList(std::string_view key) const;
  // The object itself, but for these members.
  std::string RawWithout(std::span<const std::string_view> keys) const;

  std::string At(std::string_view key) const;
  void Refuse(std::string_view key, std::string found, std::string allowed, std::string next) const;

 private:
  ObjectReader(std::string path, Problems* problems)
      : path_(std::move(path)), problems_(problems) {}
  std::optional<JsonElement> Find(std::string_view key) const;
  template <class Wanted>
  std::optional<Wanted> As(std::string_view key, std::string_view wanted) const;
  void WrongType(std::string_view key, JsonElement value, std::string_view wanted) const;

  std::optional<JsonElement> object_;  // always an object
  std::string path_;
  Problems* problems_;
};

}  // namespace ashlar::hooks
