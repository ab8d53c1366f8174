#include "base/log.h"

#include <unistd.h>

#include <chrono>
#include <ctime>
#include <iterator>
#include <string>

namespace ashlar {
namespace {

constexpr std::string_view kLevelNames[] = {"info", "warning", "error"};

void AppendEscaped(std::string& line, std::string_view text) {
  for (char c : text) {
    unsigned char byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      fmt::format_to(std::back_inserter(line), "\\x{:02x}", byte);
    } else {
      line += c;
    }
  }
}

}  // namespace

void LogLine(LogLevel level, std::string_view area, std::string_view text) {
  auto now = std::chrono::system_clock::now();
  auto millis =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
  std::time_t seconds = static_cast<std::time_t>(millis / 1000);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char stamp[32];
  size_t stamp_size = std::strftime(stamp, sizeof stamp, "%FT%T", &utc);
  std::string line(stamp, stamp_size);
  fmt::format_to(std::back_inserter(line), ".{:03}Z {} {}: ", millis % 1000,
                 kLevelNames[static_cast<int>(level)], area);
  AppendEscaped(line, text);
  line += '\n';
  [[maybe_unused]] ssize_t written =
      write(STDERR_FILENO, line.data(), line.size());  // one call: lines do not mix
}

}  // namespace ashlar
