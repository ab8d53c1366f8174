// Typed, range-checked reading of config.json or GGUF metadata that keeps going after a mistake.
// Internal to model/.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "checkpoint/checkpoint.h"

namespace ashlar {

class ConfigReader {
 public:
  // Of a config.json; `place` names it in messages.
  ConfigReader(const Json& config, std::string place)
      : config_(&config), place_(std::move(place)) {}
  // Of a GGUF: keys are looked up as "<prefix>.<key>".
  ConfigReader(const Checkpoint& gguf, std::string prefix)
      : gguf_(&gguf), prefix_(std::move(prefix) + "."), place_(gguf.path) {}

  // What keys that the file leaves out stand for, as the model's own configuration class has it: an
  // object. Files save only what differs from their class.
  void SetDefaults(Json defaults) { defaults_ = std::move(defaults); }

  // Absent and null are the same. A wrong type or a value outside [low, high] is reported and reads
  // as `low`.
  int64_t Integer(std::string_view key, int64_t low, int64_t high);
  int64_t Integer(std::string_view key, int64_t low, int64_t high, int64_t fallback);
  // The string "auto" and an absent key stand for `automatic`.
  int64_t IntegerOrAuto(std::string_view key, int64_t low, int64_t high, int64_t automatic);
  double Number(std::string_view key, double low, double high, double fallback);
  bool Boolean(std::string_view key, bool fallback);
  std::string String(std::string_view key, std::string_view fallback);
  std::vector<std::string> Strings(std::string_view key);
  std::vector<int64_t> Integers(std::string_view key, int64_t low, int64_t high);
  // One integer for all, or a list with one for each; always `count` of them.
  std::vector<int64_t> IntegerForEach(std::string_view key, int64_t low, int64_t high,
                                      size_t count);
  bool Has(std::string_view key) const;
  // A member object of config.json, or null.
  Json Object(std::string_view key);

  // A field whose value we cannot carry out.
  void Refuse(std::string_view key, std::string found, std::string allowed, std::string next);

  const Checkpoint* gguf() const { return gguf_; }
  const std::string& place() const { return place_; }
  // A reader of a nested object, reporting to the same list; `parent` owns the list and outlives
  // it.
  static ConfigReader Nested(ConfigReader& parent, const Json& object, std::string_view key);

  Problems& problems() { return parent_ != nullptr ? parent_->problems() : problems_; }

 private:
  std::optional<Json> Find(std::string_view key) const;
  std::string Place(std::string_view key) const;

  const Json* config_ = nullptr;
  Json defaults_;
  const Checkpoint* gguf_ = nullptr;
  ConfigReader* parent_ = nullptr;
  std::string prefix_;  // of GGUF keys, or of the path inside config.json
  std::string place_;
  Problems problems_;
};

}  // namespace ashlar
