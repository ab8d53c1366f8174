// One connected socket: reads and writes that end by a moment in time, whatever the peer does.
// Owned by one thread.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace ashlar {

using HttpClock = std::chrono::steady_clock;

inline HttpClock::duration HttpSpan(double seconds) {
  return std::chrono::duration_cast<HttpClock::duration>(std::chrono::duration<double>(seconds));
}

class Socket {
 public:
  // Takes the descriptor over: non-blocking, not inherited by children, without Nagle's delay.
  explicit Socket(int fd);
  Socket(const Socket&) = delete;
  ~Socket();

  enum class Outcome { kOk, kClosed, kTimeout };

  // Waits for bytes and appends what is there, 64 KiB at most.
  Outcome Read(std::string& buffer, HttpClock::time_point deadline);
  // All of it, or not kOk.
  Outcome Write(std::string_view bytes, HttpClock::time_point deadline);
  bool PeerClosed() const;
  std::string PeerAddress() const;

  int fd() const { return fd_; }
  // Hands the descriptor to somebody else.
  int Release();

 private:
  Outcome Wait(short events, HttpClock::time_point deadline) const;

  int fd_;
};

}  // namespace ashlar
