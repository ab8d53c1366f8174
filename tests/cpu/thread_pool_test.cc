#include "thread_pool.h"

#include <gtest/gtest.h>
#include <time.h>

#include <atomic>

namespace ashlar::cpu {
namespace {

TEST(ThreadPool, RunsEveryChunkOnce) {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads, {}, false);
    for (int64_t chunks : {0, 1, 2, 3, 100}) {
      std::vector<std::atomic<int>> runs(chunks);
      pool.Run(chunks, [&](int64_t chunk, int thread) {
        ASSERT_GE(thread, 0);
        ASSERT_LT(thread, threads);
        ++runs[chunk];
      });
      for (auto& count : runs) EXPECT_EQ(count, 1);
    }
  }
}

// Each loop reads what the one before wrote with plain stores; TSan sees a missing edge.
TEST(ThreadPool, ALoopSeesTheLoopBefore) {
  ThreadPool pool(4, {}, false);
  std::vector<int64_t> values(64);
  for (int round = 0; round < 2000; ++round)
    pool.Run(64, [&](int64_t chunk, int) { values[chunk] += values[chunk] == round ? 1 : 1000; });
  for (int64_t value : values) EXPECT_EQ(value, 2000);
}

TEST(ThreadPool, OneThreadIdNeverRunsTwoChunksAtOnce) {
  ThreadPool pool(4, {}, false);
  std::vector<std::atomic<int>> inside(4);
  for (int round = 0; round < 200; ++round)
    pool.Run(32, [&](int64_t, int thread) {
      EXPECT_EQ(++inside[thread], 1);
      --inside[thread];
    });
}

// All threads of this process together: a sleeping pool uses nothing.
TEST(ThreadPool, IdlePoolUsesNoCpu) {
  ThreadPool pool(4, {}, false);
  pool.Run(16, [](int64_t, int) {});
  const timespec settle{0, 20'000'000}, watch{0, 300'000'000};
  nanosleep(&settle, nullptr);
  const auto used = [] {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
  };
  const double before = used();
  nanosleep(&watch, nullptr);
  EXPECT_LT(used() - before, 0.02);
}

TEST(ThreadPool, WakesAfterSleep) {
  ThreadPool pool(3, {}, false);
  const timespec pause{0, 2'000'000};
  for (int i = 0; i < 20; ++i) {
    nanosleep(&pause, nullptr);
    std::atomic<int> runs{0};
    pool.Run(8, [&](int64_t, int) { ++runs; });
    EXPECT_EQ(runs, 8);
  }
}

}  // namespace
}  // namespace ashlar::cpu
