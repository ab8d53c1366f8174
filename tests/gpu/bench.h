// How tests/gpu/bench.cc times: a captured graph of repeats over rotating operands.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>

#include "gpu/cases.h"
#include "gpu/number.h"

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
  // Repeats `values` until `bytes` are written.
  template <class T>
  void Fill(const std::vector<T>& values, int64_t bytes) const {
    int64_t filled = std::min(static_cast<int64_t>(values.size() * sizeof(T)), bytes);
    side_.Must(side_.table().copy_in(side_.device(), side_.stream(), data_, values.data(), filled));
    for (; filled < bytes; filled *= 2) {
      const Array<int64_t> pair(side_, {0, filled});
      side_.Must(side_.table().copy_blocks(side_.device(), side_.stream(), data_, pair.data(), 1,
                                           std::min(filled, bytes - filled)));
      side_.Sync();
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

// The same as 8-bit floats.
inline std::vector<uint8_t> Bytes(int64_t count) {
  std::vector<uint8_t> values;
  for (uint16_t bits : Normals(count)) {
    const float value = gpu_kernels::Load(gpu_kernels::BF16{bits});
    values.push_back(gpu_kernels::Store<gpu_kernels::F8>(value).bits);
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

// What reading alone reached in this run, GB/s; 0 before it is measured.
inline double read_ceiling = 0;

inline void Print(const char* what, const Time& time, double bytes, double flops) {
  std::printf("%-52s %10.2f us (%.2f-%.2f)", what, time.median, time.least, time.most);
  if (bytes > 0) {
    const double rate = bytes / time.median / 1e3;
    std::printf(" %8.0f GB/s", rate);
    if (read_ceiling > 0) std::printf(" %3.0f %% of reading", 100 * rate / read_ceiling);
  }
  if (flops > 0) std::printf(" %8.1f TFLOP/s", flops / time.median / 1e6);
  std::printf("\n");
  std::fflush(stdout);
}

// Parts of the benchmark in files of their own.
void PrepareBench(const Side& side);
void SampleBench(const Side& side);

}  // namespace ashlar::gpu_test
