#include "pool.h"

#include <sched.h>

#include <algorithm>

namespace ashlar::reference {

int UsableThreads() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

Pool::Pool(int threads) : threads_(std::max(1, threads)) {
  for (int worker = 1; worker < threads_; ++worker) {
    workers_.emplace_back([this, worker] { Work(worker); });
  }
}

Pool::~Pool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  start_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void Pool::Split(int64_t count, const std::function<void(int64_t, int64_t)>& body) {
  if (threads_ == 1 || count < 2) {
    if (count > 0) body(0, count);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    body_ = &body;
    count_ = count;
    running_ = threads_ - 1;
    ++round_;
  }
  start_.notify_all();
  RunShare(0);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return running_ == 0; });
}

void Pool::Work(int worker) {
  uint64_t seen = 0;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      start_.wait(lock, [&] { return stop_ || round_ != seen; });
      if (stop_) return;
      seen = round_;
    }
    RunShare(worker);
    {
      const std::lock_guard lock(mutex_);
      --running_;
    }
    done_.notify_one();
  }
}

// body_ and count_ stay as they are from the start of a round until every share is done.
void Pool::RunShare(int worker) const {
  const int64_t begin = count_ * worker / threads_;
  const int64_t end = count_ * (worker + 1) / threads_;
  if (begin < end) (*body_)(begin, end);
}

}  // namespace ashlar::reference
