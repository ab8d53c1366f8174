// One opened device: its kernels, threads, memory and the reusable scratch of the ops. Used by one
// thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ashlar_plugin.h"
#include "common/error.h"
#include "kernels.h"
#include "thread_pool.h"

namespace ashlar::cpu {

// Zeroed memory in whole pages that the system backs when first touched, with huge pages where it
// offers them. Null when there is none.
class Pages {
 public:
  Pages() = default;
  explicit Pages(int64_t bytes);
  Pages(Pages&& other) noexcept { *this = std::move(other); }
  Pages& operator=(Pages&& other) noexcept;
  ~Pages();
  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  int64_t bytes_ = 0;
};

// Hands out 64-byte aligned parts of large pieces, so that small weights also lie in huge pages. A
// piece is given back when its last part is.
class Slabs {
 public:
  struct Part {
    std::shared_ptr<Pages> slab;
    void* data = nullptr;  // null: no memory
  };
  Part Take(int64_t bytes);

 private:
  std::shared_ptr<Pages> current_;
  int64_t used_ = 0;
};

// Grows, never shrinks; contents are lost when it grows.
class Scratch {
 public:
  template <typename T>
  T* Get(int64_t count) {
    return static_cast<T*>(Bytes(count * static_cast<int64_t>(sizeof(T))));
  }

 private:
  void* Bytes(int64_t bytes);
  Pages pages_;
};

// Cosines and sines of one step's positions, kept for the step's other layers.
struct RopeTable {
  std::vector<int32_t> positions;
  std::vector<float> inv_freq;
  float scale = 0;
  std::vector<float> cosine, sine;  // [tokens, rotary_dim / 2]
  uint64_t used = 0;
};

}  // namespace ashlar::cpu

struct ashlar_device {
  // `invariant`: no op may give a token other bits in another batch.
  ashlar_device(const ashlar::cpu::KernelTable& kernels, int threads, bool invariant = false);

  ashlar::cpu::ThreadPool pool;
  const ashlar::cpu::KernelTable& kernels;
  std::unordered_map<void*, ashlar::cpu::Pages> memory;
  std::vector<int64_t> launches;  // by row
  ashlar::cpu::Slabs weights;

  ashlar::cpu::Scratch x_codes, x_scale, x_half_sum, x_start[ASHLAR_MAX_PARTS], x_bf16,
      x_tiles;                                   // matmul
  std::vector<ashlar::cpu::Scratch> per_thread;  // attention
  ashlar::cpu::Scratch splits;
  ashlar::cpu::RopeTable rope[2];  // layers of one model alternate between at most two
  uint64_t rope_clock = 0;
  const bool invariant;
};

namespace ashlar::cpu {

// Runs body(begin, end, thread) over [0, count) in chunks. `cost` is a rough number of bytes or
// simple operations per item: too little work for a second thread stays with the caller.
template <typename Body>
void ForRanges(ashlar_device& device, int64_t count, int64_t cost, const Body& body) {
  constexpr int64_t kWorthAThread = 32 * 1024;
  const int64_t total = count * (cost > 0 ? cost : 1);
  int64_t chunks = device.pool.threads() * 4;
  if (chunks > count) chunks = count;
  if (chunks > total / kWorthAThread) chunks = total / kWorthAThread;
  if (device.pool.threads() == 1 || chunks < 2) {
    if (count > 0) body(0, count, 0);
    return;
  }
  device.pool.Run(chunks, [&](int64_t chunk, int thread) {
    body(count * chunk / chunks, count * (chunk + 1) / chunks, thread);
  });
}

}  // namespace ashlar::cpu
