#include "signals.h"

#include <cstdlib>

namespace ashlar {

Signals::Signals() {
  sigemptyset(&set_);
  sigaddset(&set_, SIGTERM);
  sigaddset(&set_, SIGINT);
  pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  signal(SIGPIPE, SIG_IGN);
  thread_ = std::thread([this] { Receive(); });
}

Signals::~Signals() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  pthread_kill(thread_.native_handle(), SIGTERM);
  thread_.join();
}

void Signals::Hold() {
  std::lock_guard lock(mutex_);
  held_ = true;
}

int Signals::Wait() {
  std::unique_lock lock(mutex_);
  received_.wait(lock, [this] { return first_ != 0; });
  return first_;
}

void Signals::OnNext(std::function<void()> action) {
  std::lock_guard lock(mutex_);
  next_ = std::move(action);
}

void Signals::Receive() {
  for (;;) {
    int number = 0;
    if (sigwait(&set_, &number) != 0) continue;
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    if (!held_) std::_Exit(128 + number);
    auto now = std::chrono::steady_clock::now();
    if (first_ == 0) {
      first_ = number;
      first_at_ = now;
      received_.notify_all();
    } else if (next_ && now - first_at_ > std::chrono::seconds(1)) {
      next_();
    }
  }
}

}  // namespace ashlar
