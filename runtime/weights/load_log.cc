#include "weights/load_log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>

#include "base/bytes.h"
#include "base/log.h"

namespace ashlar {

LoadLog::Outside LoadLog::Process() {
  Outside outside;
  outside.terminal = isatty(STDERR_FILENO) != 0;
  outside.seconds = [] {
    auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double>(now).count();
  };
  outside.log = [](std::string_view line) { LogLine(LogLevel::kInfo, "weights", line); };
  outside.raw = [](std::string_view bytes) {
    [[maybe_unused]] ssize_t written = write(STDERR_FILENO, bytes.data(), bytes.size());
  };
  return outside;
}

LoadLog::LoadLog(std::string name, Outside outside)
    : name_(std::move(name)), outside_(std::move(outside)) {
  start_ = last_ = outside_.seconds();
}

void LoadLog::operator()(int64_t done, int64_t total) {
  const bool end = done >= total;
  const double now = outside_.seconds(), since = now - last_;
  const int64_t percent =
      total > 0
          ? static_cast<int64_t>(100.0 * static_cast<double>(done) / static_cast<double>(total))
          : 100;
  if (outside_.terminal && !end) {
    if (since < 0.1) return;
    outside_.raw(fmt::format("\r\x1b[Kloading {}: {} % of {}", name_, percent, FormatBytes(total)));
    last_ = now;
    return;
  }
  if (outside_.terminal) outside_.raw("\r\x1b[K");
  const bool due = (percent / 10 > tenth_ && since >= 0.5) || since >= 5;
  if (!end && !due) return;
  outside_.log(
      end ? fmt::format("{}: loaded {} in {:.1f} s", name_, FormatBytes(total), now - start_)
          : fmt::format("{}: {} % of {} loaded", name_, percent, FormatBytes(total)));
  tenth_ = percent / 10;
  last_ = now;
}

}  // namespace ashlar
