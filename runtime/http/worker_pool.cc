#include "http/worker_pool.h"

#include <system_error>

namespace ashlar {

WorkerPool::~WorkerPool() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ready_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool WorkerPool::Run(std::function<void()>& task) {
  std::lock_guard lock(mutex_);
  if (stopping_ || busy_ >= limit_) return false;
  if (busy_ >= static_cast<int>(threads_.size())) {
    try {
      threads_.emplace_back([this] { Work(); });
    } catch (const std::system_error&) {
      return false;  // the system gives no more threads
    }
  }
  ++busy_;
  tasks_.push_back(std::move(task));
  ready_.notify_one();
  return true;
}

void WorkerPool::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    ready_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
    --busy_;
  }
}

}  // namespace ashlar
