// Reads the fields of one JSON object, each under its own rule, and keeps the first mistake of each
// field. An absent field and null are the same; 0, false, "" and {} are values.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "serve/errors.h"

namespace ashlar {

class FieldReader {
 public:
  // `object` outlives the reader; `prefix` opens paths in messages ("messages[2].").
  explicit FieldReader(const Json& object, std::string prefix = "")
      : object_(object), prefix_(std::move(prefix)) {}

  // The value, or null when absent or null. Every name asked for counts as known.
  const Json* Find(std::string_view name);
  std::optional<int64_t> Integer(std::string_view name, int64_t low, int64_t high);
  // Within [low, high]; without `low` itself when `above_low`.
  std::optional<double> Number(std::string_view name, double low, double high,
                               bool above_low = false);
  std::optional<bool> Boolean(std::string_view name);
  std::optional<std::string> String(std::string_view name, size_t most_bytes);

  void Fail(ErrorCode code, std::string_view name, std::string found, std::string allowed,
            std::string next = "");
  // Takes over the mistakes of a reader of a part of this object.
  void Adopt(const FieldReader& part);
  // Refuses every name that was never asked for and that `also` does not know.
  void RefuseUnknown(const std::set<std::string_view>& also);

  bool failed() const { return error_.has_value(); }
  // No further mistake is kept: an answer stays short however wrong a body is.
  bool full() const { return error_ && error_->more.size() + 1 >= kMostMistakes; }
  // All mistakes in the order found.
  const std::optional<ApiError>& error() const { return error_; }
  std::string Path(std::string_view name) const { return prefix_ + std::string(name); }

 private:
  static constexpr size_t kMostMistakes = 16;

  void Keep(ErrorCode code, const Problem& problem);

  const Json& object_;
  std::string prefix_;
  std::set<std::string, std::less<>> known_;
  std::optional<ApiError> error_;
};

// The value as messages quote it: its JSON, cut.
std::string Quoted(const Json& value);

}  // namespace ashlar
