// What bench_cpu measures with: the clock, random weights and activations, the read bandwidth.
#pragma once

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ops.h"

namespace ashlar::cpu {

// With one thread, the time that it ran: comparable also when others use the machine.
inline bool own_time_only = false;

inline double Seconds() {
  if (own_time_only) {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct TypeName {
  const char* name;
  ashlar_dtype dtype;
  int columns, bytes;
};
inline constexpr TypeName kTypes[] = {
    {"f32", ASHLAR_F32, 1, 4},       {"f16", ASHLAR_F16, 1, 2},
    {"bf16", ASHLAR_BF16, 1, 2},     {"q8_0", ASHLAR_Q8_0, 32, 34},
    {"q4_0", ASHLAR_Q4_0, 32, 18},   {"q4_1", ASHLAR_Q4_1, 32, 20},
    {"q5_0", ASHLAR_Q5_0, 32, 22},   {"q5_1", ASHLAR_Q5_1, 32, 24},
    {"q4_k", ASHLAR_Q4_K, 256, 144}, {"q5_k", ASHLAR_Q5_K, 256, 176},
    {"q6_k", ASHLAR_Q6_K, 256, 210}};

inline const TypeName& Type(const std::string& name) {
  for (const TypeName& type : kTypes)
    if (name == type.name) return type;
  fprintf(stderr, "unknown type %s\n", name.c_str());
  exit(2);
}

// Bytes of a random weight whose 16-bit fields are small normal numbers in every format.
inline std::vector<uint8_t> RandomSource(const TypeName& type, int64_t rows, int64_t cols) {
  std::vector<uint8_t> bytes(rows * (cols / type.columns) * type.bytes);
  // Bits that stay: f16 fields below 2^-3; f32 and bf16 between 2^-63 and 2; none subnormal.
  const uint64_t keep = type.columns > 1 || type.dtype == ASHLAR_F16 ? 0x2fff2fff2fff2fffu
                        : type.dtype == ASHLAR_F32                   ? 0x9fffffff9fffffffu
                                                                     : 0x9fff9fff9fff9fffu;
  const uint64_t set = type.columns > 1 || type.dtype == ASHLAR_F16 ? 0x0400040004000400u
                       : type.dtype == ASHLAR_F32                   ? 0x2000000020000000u
                                                                    : 0x2000200020002000u;
  uint64_t state = 0x9e3779b97f4a7c15u;
  for (size_t i = 0; i + 8 <= bytes.size(); i += 8) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    const uint64_t word = (state & keep) | set;
    memcpy(bytes.data() + i, &word, 8);
  }
  return bytes;
}

struct WeightDeleter {
  void operator()(ashlar_weight* weight) const { delete weight; }
};
using WeightPtr = std::unique_ptr<ashlar_weight, WeightDeleter>;

struct Matrix {
  std::vector<std::vector<uint8_t>> sources;
  WeightPtr weight;
  int64_t bytes = 0;
  double seconds = 0;  // to pack
};

inline Matrix MakeMatrix(ashlar_device& device, const TypeName& type, std::vector<int64_t> rows,
                         int64_t cols) {
  Matrix matrix;
  ashlar_weight_desc desc{};
  desc.parts = static_cast<int32_t>(rows.size());
  desc.cols = cols;
  const void* pointers[ASHLAR_MAX_PARTS] = {};
  for (size_t i = 0; i < rows.size(); ++i) {
    desc.dtype[i] = type.dtype;
    desc.rows[i] = rows[i];
    matrix.sources.push_back(RandomSource(type, rows[i], cols));
    matrix.bytes += matrix.sources.back().size();
    pointers[i] = matrix.sources.back().data();
  }
  ashlar_weight* weight = nullptr;
  const double start = Seconds();
  if (CreateWeight(device, desc, pointers, &weight) != ASHLAR_OK) {
    fprintf(stderr, "%s\n", LastError());
    exit(1);
  }
  matrix.seconds = Seconds() - start;
  matrix.weight.reset(weight);
  if (PackedBytes(desc) > 0) matrix.sources.clear();
  return matrix;
}

struct Floats {
  std::vector<float> data;
  int64_t cols;
  Floats(int64_t rows, int64_t columns) : data(rows * columns), cols(columns) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (float& v : data) v = normal(random);
  }
  ashlar_tensor View(int64_t rows) {
    return {data.data(), ASHLAR_F32, 2, {rows, cols}, {cols * 4, 4}};
  }
  ashlar_tensor Vector() { return {data.data(), ASHLAR_F32, 1, {cols}, {4}}; }
  ashlar_tensor Heads(int64_t rows, int64_t heads) {
    const int64_t dim = cols / heads;
    return {data.data(), ASHLAR_F32, 3, {rows, heads, dim}, {cols * 4, dim * 4, 4}};
  }
};

inline void Must(int code) {
  if (code == ASHLAR_OK) return;
  fprintf(stderr, "%s\n", LastError());
  exit(1);
}

// Read bandwidth in GB/s of all the device's threads over a buffer that no cache holds; best of 5.
inline double ReadBandwidth(ashlar_device& device) {
  constexpr int64_t kBytes = int64_t{512} << 20, kChunk = 1 << 20;
  static Pages pages(kBytes);
  memset(pages.data(), 1, kBytes);
  double best = 0;
  std::vector<uint64_t> sums(device.pool.threads() * 8);
  for (int run = 0; run < 5; ++run) {
    const double start = Seconds();
    device.pool.Run(kBytes / kChunk, [&](int64_t chunk, int thread) {
      const auto* p =
          reinterpret_cast<const uint64_t*>(static_cast<char*>(pages.data()) + chunk * kChunk);
      uint64_t a = 0, b = 0, c = 0, d = 0;
      for (int64_t i = 0; i < kChunk / 8; i += 8) {  // one load a line is enough to fetch it
        __builtin_prefetch(p + i + 512);
        a += p[i], b += p[i + 2], c += p[i + 4], d += p[i + 6];
      }
      sums[thread * 8] += a + b + c + d;
    });
    best = std::max(best, kBytes / (Seconds() - start) / 1e9);
  }
  return best;
}

// Calls run() until `seconds` have passed, at least 3 times; the median of its times.
template <typename Run>
double Median(double seconds, Run run) {
  run();
  std::vector<double> times;
  const double end = Seconds() + seconds;
  while (times.size() < 3 || Seconds() < end) {
    const double start = Seconds();
    run();
    times.push_back(Seconds() - start);
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

}  // namespace ashlar::cpu
