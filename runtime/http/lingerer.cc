#include "http/lingerer.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace ashlar {
namespace {

constexpr size_t kMost = 512;
constexpr auto kPatience = std::chrono::seconds(2);

// Whether the peer has closed too (or is beyond hope); throws away what it sent, a bounded amount
// a round.
bool Drained(int fd) {
  std::array<char, 16384> bytes;
  for (int round = 0; round < 64; ++round) {
    ssize_t got = recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got == 0) return true;
    if (got < 0) return errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR;
  }
  return false;
}

}  // namespace

Lingerer::Lingerer() : thread_([this] { Work(); }) {}

Lingerer::~Lingerer() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ready_.notify_one();
  thread_.join();
  for (const Entry& entry : entries_) close(entry.fd);
}

void Lingerer::Close(int fd) {
  shutdown(fd, SHUT_WR);
  std::lock_guard lock(mutex_);
  if (entries_.size() >= kMost) {
    close(entries_.front().fd);
    entries_.pop_front();
  }
  entries_.push_back({fd, HttpClock::now() + kPatience});
  ready_.notify_one();
}

void Lingerer::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    ready_.wait(lock, [this] { return stopping_ || !entries_.empty(); });
    if (stopping_) break;
    std::erase_if(entries_, [now = HttpClock::now()](const Entry& entry) {
      if (entry.until > now && !Drained(entry.fd)) return false;
      close(entry.fd);
      return true;
    });
    // A look every few milliseconds is cheaper than watching each; there is work here only after
    // a refusal.
    ready_.wait_for(lock, std::chrono::milliseconds(5), [this] { return stopping_; });
  }
}

}  // namespace ashlar
