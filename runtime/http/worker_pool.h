// Threads made when there is work for them, up to a bound, and kept. A task that finds no thread is
// handed back, never queued behind another.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace ashlar {

class WorkerPool {
 public:
  explicit WorkerPool(int threads) : limit_(threads) {}
  // Waits for the tasks that run.
  ~WorkerPool();

  // False, without taking the task, when every thread is busy and no more may or can be made.
  bool Run(std::function<void()>& task);

 private:
  void Work();

  const int limit_;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::function<void()>> tasks_;
  std::vector<std::thread> threads_;
  int busy_ = 0;  // tasks waiting and running
  bool stopping_ = false;
};

}  // namespace ashlar
