// Reads one JSON object strictly: every key known, every key there, every value of its type and in
// range. Gathers all mistakes with the path of each.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace ashlar {

// What a report holds; later mistakes are left out of it.
inline constexpr size_t kMostProblems = 50;

class JsonObject {
 public:
  // `keys` are those that the object must have, and no others. Adds to `problems`, which outlives
  // this.
  JsonObject(const Json& json, std::string place, std::span<const std::string_view> keys,
             Problems& problems);

  std::string Text(std::string_view key);
  // One of `words`, or "" with a problem.
  std::string Word(std::string_view key, std::span<const std::string> words);
  int64_t Number(std::string_view key, int64_t max);
  // An empty list when there is none. The returned value lives as long as the object read.
  const Json& List(std::string_view key);
  std::vector<std::string> Texts(std::string_view key);
  // Null when the key has no value of use.
  const Json* Find(std::string_view key) const;

  std::string At(std::string_view key) const;
  void Refuse(std::string_view key, std::string found, std::string allowed);

 private:
  const Json& json_;
  std::string place_;
  Problems& problems_;
};

}  // namespace ashlar
