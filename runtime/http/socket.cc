#include "http/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace ashlar {

Socket::Socket(int fd) : fd_(fd) {
  fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) | O_NONBLOCK);
  fcntl(fd_, F_SETFD, FD_CLOEXEC);
  int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Socket::~Socket() {
  if (fd_ < 0) return;
  EndTls();
  close(fd_);
}

int Socket::Release() {
  EndTls();
  int fd = fd_;
  fd_ = -1;
  return fd;
}

Socket::Outcome Socket::Wait(short events, HttpClock::time_point deadline) const {
  while (true) {
    auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - HttpClock::now()).count();
    if (left <= 0) return Outcome::kTimeout;
    pollfd entry{fd_, events, 0};
    int ready = poll(&entry, 1, static_cast<int>(std::min<int64_t>(left + 1, 3'600'000)));
    if (ready > 0) return Outcome::kOk;
    if (ready < 0 && errno != EINTR) return Outcome::kClosed;
  }
}

Socket::Outcome Socket::Receive(std::string& buffer, HttpClock::time_point deadline) {
  std::array<char, 65536> bytes;
  while (true) {
    ssize_t got = recv(fd_, bytes.data(), bytes.size(), 0);
    if (got > 0) {
      buffer.append(bytes.data(), static_cast<size_t>(got));
      return Outcome::kOk;
    }
    if (got == 0) return Outcome::kClosed;
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return Outcome::kClosed;
    Outcome waited = Wait(POLLIN, deadline);
    if (waited != Outcome::kOk) return waited;
  }
}

Socket::Outcome Socket::Send(std::string_view bytes, HttpClock::time_point deadline) {
  while (!bytes.empty()) {
    ssize_t put = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (put > 0) {
      bytes.remove_prefix(static_cast<size_t>(put));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return Outcome::kClosed;
    Outcome waited = Wait(POLLOUT, deadline);
    if (waited != Outcome::kOk) return waited;
  }
  return Outcome::kOk;
}

// Repeats a step of TLS, sending what it yields and receiving what it waits for, until it is done.
template <class Step>
Socket::Outcome Socket::Drive(Step&& step, HttpClock::time_point deadline) {
  while (true) {
    TlsSession::State state = step();
    Outcome outcome = Send(tls_->Take(), deadline);  // an alert too, when it has failed
    if (outcome != Outcome::kOk) return outcome;
    if (state == TlsSession::State::kOk) return Outcome::kOk;
    if (state == TlsSession::State::kFailed) return Outcome::kClosed;
    std::string bytes;
    outcome = Receive(bytes, deadline);
    if (outcome != Outcome::kOk) return outcome;
    tls_->Feed(bytes);
  }
}

Socket::Outcome Socket::StartTls(std::unique_ptr<TlsSession> session,
                                 HttpClock::time_point deadline) {
  tls_ = std::move(session);
  return Drive([this] { return tls_->Handshake(); }, deadline);
}

// Says so to the peer if that can be said at once.
void Socket::EndTls() {
  if (tls_ == nullptr) return;
  tls_->Close();
  Send(tls_->Take(), HttpClock::now());
  tls_.reset();
}

Socket::Outcome Socket::Read(std::string& buffer, HttpClock::time_point deadline) {
  if (tls_ == nullptr) return Receive(buffer, deadline);
  return Drive([&] { return tls_->Read(buffer); }, deadline);
}

Socket::Outcome Socket::Write(std::string_view bytes, HttpClock::time_point deadline) {
  if (tls_ == nullptr) return Send(bytes, deadline);
  return bytes.empty() ? Outcome::kOk : Drive([&] { return tls_->Write(bytes); }, deadline);
}

bool Socket::PeerClosed() const {
  pollfd entry{fd_, POLLRDHUP, 0};
  return poll(&entry, 1, 0) > 0 && (entry.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

std::string Socket::PeerAddress() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getpeername(fd_, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* raw =
      address.ss_family == AF_INET6
          ? static_cast<const void*>(&reinterpret_cast<sockaddr_in6&>(address).sin6_addr)
          : static_cast<const void*>(&reinterpret_cast<sockaddr_in&>(address).sin_addr);
  return inet_ntop(address.ss_family, raw, text.data(), text.size()) ? text.data() : "";
}

}  // namespace ashlar
