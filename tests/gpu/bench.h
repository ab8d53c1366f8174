// How tests/gpu/bench.cc times: a captured graph of repeats over rotating operands.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>

#include "gpu/cases.h"

namespace ashlar::gpu_test {

using Clock = std::chrono::steady_clock;

inline constexpr int kRuns = 7;

// Uninitialised but zeroed device memory.
class Memory {
 public:
  Memory(const Side& side, int64_t bytes) : side_(side) {
    side_.Must(side_.table().alloc(side_.device(), bytes, &data_));
  }
  Memory(const Memory&) = delete;
  ~Memory() { side_.table().release(side_.device(), data_); }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  // Copies `values` over and over until `bytes` are written.
  template <class T>
  void Fill(const std::vector<T>& values, int64_t bytes) const {
    const auto step = static_cast<int64_t>(values.size() * sizeof(T));
    for (int64_t at = 0; at < bytes; at += step) {
      side_.Must(side_.table().copy_in(side_.device(), side_.stream(), as<char>() + at,
                                       values.data(), std::min(step, bytes - at)));
    }
    side_.Sync();
  }

 private:
  const Side& side_;
  void* data_ = nullptr;
};

// bfloat16 normals; the top half of a float32.
inline std::vector<uint16_t> Normals(int64_t count) {
  static Random random(1);
  std::vector<uint16_t> values;
  for (float value : random.Normals(count, 0.5)) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    values.push_back(static_cast<uint16_t>(bits >> 16));
  }
  return values;
}

// Microseconds of one call: median, least and most of kRuns launches of a graph of `repeats` calls.
struct Time {
  double median, least, most;
};
inline Time Measure(const Side& side, int repeats, const std::function<void(int)>& call) {
  const ashlar_plugin& t = side.table();
  for (int i = 0; i < 2; ++i) call(i);  // scratch grows before the capture
  side.Sync();
  ashlar_graph* graph = nullptr;
  side.Must(t.graph_begin(side.device(), side.stream()));
  for (int i = 0; i < repeats; ++i) call(i);
  side.Must(t.graph_end(side.device(), side.stream(), &graph));
  std::vector<double> times;
  for (int run = 0; run < kRuns + 2; ++run) {
    side.Sync();
    const auto begin = Clock::now();
    side.Must(t.graph_launch(side.device(), side.stream(), graph));
    side.Sync();
    const std::chrono::duration<double, std::micro> took = Clock::now() - begin;
    if (run >= 2) times.push_back(took.count() / repeats);
  }
  t.graph_destroy(side.device(), graph);
  std::sort(times.begin(), times.end());
  return {times[kRuns / 2], times.front(), times.back()};
}

inline void Print(const char* what, const Time& time, double bytes, double flops) {
  std::printf("%-52s %10.2f us (%.2f-%.2f)", what, time.median, time.least, time.most);
  if (bytes > 0) std::printf(" %8.0f GB/s", bytes / time.median / 1e3);
  if (flops > 0) std::printf(" %8.1f TFLOP/s", flops / time.median / 1e6);
  std::printf("\n");
  std::fflush(stdout);
}

// One part of the benchmark in a file of its own.
void SampleBench(const Side& side);

}  // namespace ashlar::gpu_test
