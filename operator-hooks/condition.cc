#include "operator-hooks/condition.h"

#include <fmt/chrono.h>

#include <algorithm>

namespace ashlar::hooks {

std::string_view Name(Truth truth) {
  switch (truth) {
    case Truth::kTrue:
      return "True";
    case Truth::kFalse:
      return "False";
    case Truth::kUnknown:
      break;
  }
  return "Unknown";
}

const Condition* Find(const std::vector<Condition>& conditions, std::string_view type) {
  auto found = std::find_if(conditions.begin(), conditions.end(),
                            [&](const Condition& condition) { return condition.type == type; });
  return found == conditions.end() ? nullptr : &*found;
}

void KeepTimes(const std::vector<Condition>& previous, std::string_view now,
               std::vector<Condition>& conditions) {
  for (Condition& condition : conditions) {
    const Condition* before = Find(previous, condition.type);
    bool same = before != nullptr && before->status == condition.status && !before->since.empty();
    condition.since = same ? before->since : std::string(now);
  }
}

std::string CutText(const std::string& text, size_t bytes) {
  if (text.size() <= bytes) return text;
  size_t end = bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

std::string Timestamp(int64_t unix_seconds) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(unix_seconds)));
}

}  // namespace ashlar::hooks
