// One connected socket: reads and writes that end by a moment in time, whatever the peer does; with
// TLS once it was started. Owned by one thread.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "http/tls.h"

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

  // Agrees with the peer on a key; from then on bytes are read and written encrypted.
  Outcome StartTls(std::unique_ptr<TlsSession> session, HttpClock::time_point deadline);

  // Waits for bytes and appends what is there, 64 KiB at most.
  Outcome Read(std::string& buffer, HttpClock::time_point deadline);
  // All of it, or not kOk.
  Outcome Write(std::string_view bytes, HttpClock::time_point deadline);
  bool PeerClosed() const;
  std::string PeerAddress() const;

  int fd() const { return fd_; }
  // Hands the descriptor to somebody else, who sends no more.
  int Release();

 private:
  Outcome Wait(short events, HttpClock::time_point deadline) const;
  Outcome Receive(std::string& buffer, HttpClock::time_point deadline);
  Outcome Send(std::string_view bytes, HttpClock::time_point deadline);
  template <class Step>
  Outcome Drive(Step&& step, HttpClock::time_point deadline);
  void EndTls();

  int fd_;
  std::unique_ptr<TlsSession> tls_;  // null without TLS
};

}  // namespace ashlar
