// Threads that share out independent outputs. Each output is computed whole by one thread, so the
// number of threads changes no result.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace ashlar::reference {

// Threads that this process may run on; at least 1.
int UsableThreads();

// Owned and used by one thread, which works too.
class Pool {
 public:
  // `threads` counts the caller.
  explicit Pool(int threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Calls body(begin, end) over disjoint ranges that cover [0, count) and returns when all are
  // done. `body` throws nothing.
  void Split(int64_t count, const std::function<void(int64_t, int64_t)>& body);

 private:
  void Work(int worker);
  void RunShare(int worker) const;

  std::mutex mutex_;
  std::condition_variable start_, done_;
  const std::function<void(int64_t, int64_t)>* body_ = nullptr;  // of the round in progress
  int64_t count_ = 0;
  uint64_t round_ = 0;
  int running_ = 0;
  bool stop_ = false;
  int threads_;
  std::vector<std::thread> workers_;
};

}  // namespace ashlar::reference
