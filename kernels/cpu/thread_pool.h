// Threads that share one loop at a time. The caller takes part; workers spin briefly for the next
// loop and then sleep, so an idle pool uses no CPU. The caller never waits for a worker to wake: a
// loop ends when its chunks are done, whoever did them.
//
// Run() is called by one thread at a time and never from inside a loop.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace ashlar::cpu {

class ThreadPool {
 public:
  // `threads` counts the caller. With `pin`, worker i keeps to cpu_sets[i % size].
  ThreadPool(int threads, const std::vector<std::vector<int>>& cpu_sets, bool pin);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // body(chunk, thread) for each chunk in [0, chunks), thread in [0, threads()).
  template <typename Body>
  void Run(int64_t chunks, const Body& body) {
    RunJob(chunks, &Call<Body>, &body);
  }

 private:
  using Function = void (*)(const void* body, int64_t chunk, int thread);
  template <typename Body>
  static void Call(const void* body, int64_t chunk, int thread) {
    (*static_cast<const Body*>(body))(chunk, thread);
  }

  void RunJob(int64_t chunks, Function function, const void* body);
  void Work(int thread);
  bool TakeChunk(int thread);
  bool WaitForWork();

  // Low half: next chunk; high half: chunks of the loop. One word, so that a late worker can take a
  // chunk only of the loop that is running, whose fields below then stay as they are until it is
  // done.
  alignas(64) std::atomic<uint64_t> ticket_{0};
  alignas(64) std::atomic<uint32_t> done_{0};
  alignas(64) std::atomic<uint32_t> wake_{0};  // changes whenever sleepers must look again
  std::atomic<int32_t> sleepers_{0};
  std::atomic<bool> stop_{false};
  Function function_ = nullptr;
  const void* body_ = nullptr;
  std::vector<std::thread> workers_;
};

}  // namespace ashlar::cpu
