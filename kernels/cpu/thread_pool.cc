#include "thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <chrono>

namespace ashlar::cpu {
namespace {

using Clock = std::chrono::steady_clock;

// Longer than the gap between two ops of a step, shorter than a wake-up that anybody would notice.
constexpr auto kSpin = std::chrono::microseconds(40);
constexpr int kSpinsPerClock = 64;

void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

// True when ready() became true within kSpin.
template <typename Ready>
bool Spin(Ready ready) {
  Clock::time_point end{};
  for (;;) {
    for (int i = 0; i < kSpinsPerClock; ++i) {
      if (ready()) return true;
      Pause();
    }
    const auto now = Clock::now();
    if (end == Clock::time_point{}) end = now + kSpin;
    if (now >= end) return false;
  }
}

bool HasChunk(uint64_t ticket) { return static_cast<uint32_t>(ticket) < ticket >> 32; }

void Pin(std::thread& thread, const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu : cpus)
    if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
  // A refusal leaves the worker where the system puts it.
  (void)pthread_setaffinity_np(thread.native_handle(), sizeof set, &set);
}

}  // namespace

ThreadPool::ThreadPool(int threads, const std::vector<std::vector<int>>& cpu_sets, bool pin) {
  for (int i = 1; i < threads; ++i) {
    workers_.emplace_back([this, i] { Work(i); });
    if (pin && !cpu_sets.empty()) Pin(workers_.back(), cpu_sets[i % cpu_sets.size()]);
  }
}

ThreadPool::~ThreadPool() {
  stop_.store(true);
  wake_.fetch_add(1);
  wake_.notify_all();
  for (auto& worker : workers_) worker.join();
}

bool ThreadPool::TakeChunk(int thread) {
  uint64_t ticket = ticket_.load(std::memory_order_acquire);
  while (HasChunk(ticket)) {
    if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel)) continue;
    const uint32_t chunks = static_cast<uint32_t>(ticket >> 32);
    function_(body_, static_cast<uint32_t>(ticket), thread);
    if (done_.fetch_add(1) + 1 == chunks) done_.notify_one();
    return true;
  }
  return false;
}

void ThreadPool::RunJob(int64_t chunks, Function function, const void* body) {
  if (workers_.empty() || chunks <= 1) {
    for (int64_t i = 0; i < chunks; ++i) function(body, i, 0);
    return;
  }
  function_ = function;
  body_ = body;
  done_.store(0, std::memory_order_relaxed);
  // Sequentially consistent with sleepers_: a worker that counts itself asleep after this load sees
  // the ticket before it sleeps.
  ticket_.store(static_cast<uint64_t>(chunks) << 32);
  if (sleepers_.load() > 0) {
    wake_.fetch_add(1);
    wake_.notify_all();
  }
  while (TakeChunk(0)) {
  }
  const uint32_t all = static_cast<uint32_t>(chunks);
  if (Spin([&] { return done_.load(std::memory_order_acquire) == all; })) return;
  for (uint32_t done = done_.load(); done != all; done = done_.load()) done_.wait(done);
}

bool ThreadPool::WaitForWork() {
  const auto ready = [this] {
    return HasChunk(ticket_.load(std::memory_order_acquire)) ||
           stop_.load(std::memory_order_relaxed);
  };
  while (!Spin(ready)) {
    const uint32_t seen = wake_.load();
    sleepers_.fetch_add(1);
    if (!HasChunk(ticket_.load()) && !stop_.load()) wake_.wait(seen);
    sleepers_.fetch_sub(1);
  }
  return !stop_.load();
}

void ThreadPool::Work(int thread) {
  while (WaitForWork())
    while (TakeChunk(thread)) {
    }
}

}  // namespace ashlar::cpu
