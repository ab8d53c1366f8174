// One line an event on standard error: "2026-01-31T12:00:00.123Z info select: text". Any thread; a
// line is never split. Prompts, keys and generated text are never logged.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace ashlar {

enum class LogLevel { kInfo, kWarning, kError };

// Control characters in `text` are written as \xNN.
void LogLine(LogLevel level, std::string_view area, std::string_view text);

template <class... Args>
void LogInfo(std::string_view area, fmt::format_string<Args...> format, Args&&... args) {
  LogLine(LogLevel::kInfo, area, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void LogWarning(std::string_view area, fmt::format_string<Args...> format, Args&&... args) {
  LogLine(LogLevel::kWarning, area, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void LogError(std::string_view area, fmt::format_string<Args...> format, Args&&... args) {
  LogLine(LogLevel::kError, area, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace ashlar
