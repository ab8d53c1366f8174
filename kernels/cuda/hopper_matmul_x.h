// x of very few tokens, which each block brings to shared memory as a whole: normed and of the
// weight's type, without a kernel ahead.
#pragma once

#include "gpu/block.h"
#include "hopper_matmul.h"
#include "hopper_products.h"

#if defined(ASHLAR_HOPPER)

namespace ashlar::hopper {

struct ResidentX {
  // 16 bytes of k of each token, then the next 16 bytes of k. The instruction reads eight tokens
  // from where the first lies: what those that do not exist come to is not looked at.
  char values[kMostResidentBytes + 128];
  float largest[kMostResidentTokens];
  float scale[kMostResidentTokens];  // what a token's sums are to be multiplied by
  float2 share[kMostResidentBytes / 512 + kMostResidentTokens];  // largest value, sum of squares
};

// Of the threads that multiply. A warp takes shares of 32 pieces of one token, a piece is 16 bytes
// of what is multiplied.
template <class T, int kThreads>
class XStager {
 public:
  GPU_DEVICE XStager(ResidentX& to, const MatmulParams& p)
      : to_(to),
        p_(p),
        pieces_(p.depth * (kRowBytes / 16)),
        shares_((pieces_ + 31) / 32),
        end_(p.tokens * shares_ * 32) {}

  // The caller's threads then synchronise.
  GPU_DEVICE void Run() {
    for (int i = gpu::ThreadX(); i < end_; i += kThreads) {
      float value[kValues], squares = 0, largest = 0;
      Load(i, value, &squares);
      if constexpr (!kF8) Store(i, value, 1);
#pragma unroll
      for (const float each : value) largest = fmaxf(largest, fabsf(each));
      largest = WaveMax(largest);
      squares = WaveSum(squares);
      if (i % 32 == 0) to_.share[i / 32] = make_float2(largest, squares);
    }
    SyncNamed(1, kThreads);
    const int warp = gpu::ThreadX() / 32;
    if (warp < p_.tokens) Scale(warp);
    if constexpr (kF8) {
      SyncNamed(1, kThreads);
      for (int i = gpu::ThreadX(); i < end_; i += kThreads) {
        float value[kValues], squares = 0;
        Load(i, value, &squares);
        const float largest = to_.largest[Token(i)];
        Store(i, value, largest > 0 ? gpu_kernels::kLargestF8 / largest : 0);
      }
    }
    FenceShared();
  }

 private:
  static constexpr bool kF8 = std::is_same_v<T, F8>;
  static constexpr int kValues = 16 / static_cast<int>(sizeof(T));

  GPU_DEVICE int Token(int i) const { return i / 32 / shares_; }
  GPU_DEVICE int Piece(int i) const { return i - Token(i) * shares_ * 32; }

  // The values of a piece times the norm's weight.
  GPU_DEVICE void Load(int i, float (&value)[kValues], float* squares) const {
    const char* row = static_cast<const char*>(p_.x) + Token(i) * p_.x_row_bytes;
#pragma unroll
    for (int part = 0; part < kValues; part += 8) {
      const int col = Piece(i) * kValues + part;
#pragma unroll
      for (int j = part; j < part + 8; ++j) value[j] = 0;
      if (col >= p_.cols) continue;
      gpu_kernels::LoadFloats(p_.x_dtype, row, col, value + part);
      if (p_.norm == nullptr) continue;
      float by[8];
      gpu_kernels::LoadFloats(ASHLAR_F32, p_.norm, col, by);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        *squares += value[part + j] * value[part + j];
        value[part + j] *= by[j];
      }
    }
  }

  GPU_DEVICE void Store(int i, const float (&value)[kValues], float by) {
    if (Piece(i) >= pieces_) return;
    gpu::Vector packed;
#pragma unroll
    for (int word = 0; word < 4; ++word) {
      if constexpr (kF8) {
        const float* from = value + 4 * word;
        packed.word[word] = gpu_kernels::PackF8(from[0] * by, from[1] * by) |
                            gpu_kernels::PackF8(from[2] * by, from[3] * by) << 16;
      } else {
        packed.word[word] = Pack<T>(value[2 * word], value[2 * word + 1]);
      }
    }
    *reinterpret_cast<gpu::Vector*>(to_.values + (Piece(i) * p_.tokens + Token(i)) * 16) = packed;
  }

  GPU_DEVICE static float WaveSum(float value) {
    return gpu_kernels::WaveReduce<32>(value, [](float a, float b) { return a + b; });
  }
  GPU_DEVICE static float WaveMax(float value) {
    return gpu_kernels::WaveReduce<32>(value, [](float a, float b) { return fmaxf(a, b); });
  }

  // By one warp.
  GPU_DEVICE void Scale(int token) {
    float largest = 0, squares = 0;
    for (int i = gpu::ThreadX() % 32; i < shares_; i += 32) {
      const float2 share = to_.share[token * shares_ + i];
      largest = fmaxf(largest, share.x);
      squares += share.y;
    }
    largest = WaveMax(largest);
    squares = WaveSum(squares);
    if (gpu::ThreadX() % 32 != 0) return;
    float scale = kF8 ? largest / gpu_kernels::kLargestF8 : 1;
    if (p_.norm != nullptr) scale /= sqrtf(squares / static_cast<float>(p_.cols) + p_.eps);
    to_.scale[token] = scale;
    to_.largest[token] = largest;
  }

  ResidentX& to_;
  const MatmulParams& p_;
  const int pieces_, shares_, end_;
};

}  // namespace ashlar::hopper

#endif
