// SIGTERM and SIGINT as values: a thread of its own receives them, so that no code runs inside a
// signal handler.
#pragma once

#include <signal.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace ashlar {

class Signals {
 public:
  // Blocks both in this thread and in all that it starts; made before any other thread. Ignores
  // SIGPIPE.
  Signals();
  ~Signals();

  // Until here a signal ends the process at once with 128 + its number: nothing is served yet that
  // could be lost.
  void Hold();
  // The first signal since Hold.
  int Wait();
  // Called on the receiving thread for each later signal. A repeat within a second of the first is
  // not one: supervisors signal a process and its group.
  void OnNext(std::function<void()> action);

 private:
  void Receive();

  sigset_t set_;
  std::mutex mutex_;
  std::condition_variable received_;
  bool held_ = false, stopping_ = false;
  int first_ = 0;
  std::chrono::steady_clock::time_point first_at_;
  std::function<void()> next_;
  std::thread thread_;
};

}  // namespace ashlar
