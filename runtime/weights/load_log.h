// Says how far a load has come: on a terminal one line that is rewritten, else log lines.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace ashlar {

// Called from the loading thread as a LoadProgress.
class LoadLog {
 public:
  // Where it writes and what time it is; the test puts its own there.
  struct Outside {
    bool terminal;                              // standard error is one
    std::function<double()> seconds;            // monotonic
    std::function<void(std::string_view)> log;  // one line
    std::function<void(std::string_view)> raw;  // bytes for the terminal
  };
  static Outside Process();

  explicit LoadLog(std::string name, Outside outside = Process());

  // A log line at each further tenth, but not within half a second of the line before; after 5
  // seconds in any case, and at the end. A terminal's line is rewritten every 100 ms.
  void operator()(int64_t done, int64_t total);

 private:
  std::string name_;
  Outside outside_;
  double start_, last_;
  int64_t tenth_ = 0;
};

}  // namespace ashlar
