// Conditions of the custom resource: what is true of a model, and since when.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ashlar::hooks {

enum class Truth { kTrue, kFalse, kUnknown };
inline constexpr std::array kTruths = {Truth::kTrue, Truth::kFalse, Truth::kUnknown};
std::string_view Name(Truth truth);  // "True"

// Every condition, in the order in which the status has them.
inline constexpr std::array<std::string_view, 10> kConditionTypes = {
    "Accepted",        "SourceReady", "Scheduled", "PlatformDetected", "BackendsSelected",
    "ShapesValidated", "Serving",     "Ready",     "Progressing",      "Degraded"};

struct Condition {
  std::string type;
  Truth status = Truth::kUnknown;
  std::string reason, message;
  std::string since;  // lastTransitionTime
};

const Condition* Find(const std::vector<Condition>& conditions, std::string_view type);

// The time that stands in `previous` while type and status are the same, else `now`.
void KeepTimes(const std::vector<Condition>& previous, std::string_view now,
               std::vector<Condition>& conditions);

// At most `bytes` of the text, cut between characters with "..." behind.
std::string CutText(const std::string& text, size_t bytes);

// Seconds since 1970 as "2026-01-31T12:00:00Z".
std::string Timestamp(int64_t unix_seconds);

}  // namespace ashlar::hooks
