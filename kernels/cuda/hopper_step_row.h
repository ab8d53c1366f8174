// A head of one token as four neighbouring lanes prepare it: lane l has eight values of each chunk,
// as the products take them, and with them both of each pair that a rotary embedding turns.
#pragma once

#include "gpu/matrix.h"

namespace ashlar::hopper {

// A token and one of its KV heads, with what else differs from pair to pair of a launch.
struct StepPair {
  int kv_head, group;                       // group: query heads that share it
  const char* qkv;                          // the token's row
  char *q_out, *out;                        // and those of its answer
  const float *q_norm, *k_norm, *inv_freq;  // or nullptr
  const int32_t *position, *context, *block_table;
  const int64_t* slot;
  char* kv_base;
  int window;
  uint32_t round = 0;  // of the words of qkv and out, where those are words (hopper_words.h)
};

// In shared memory, by column or by pair of columns; what the preparation has none of is not read.
template <int kHeadDim>
struct StepTables {
  float cosine[kHeadDim / 2], sine[kHeadDim / 2], q_norm[kHeadDim], k_norm[kHeadDim];

  // A thread's part of them, as it comes from memory.
  struct Entry {
    int position = 0;
    float inv_freq = 0, q_norm = 0, k_norm = 0;
  };
  // All loads at once, of which none is waited for here.
  GPU_DEVICE static Entry Load(const StepPair& pair) {
    const int thread = gpu::ThreadX();
    Entry entry;
    if (pair.inv_freq != nullptr && thread < kHeadDim / 2) {
      entry.position = *pair.position;
      entry.inv_freq = pair.inv_freq[thread];
    }
    if (pair.q_norm != nullptr && thread < kHeadDim) entry.q_norm = pair.q_norm[thread];
    if (pair.k_norm != nullptr && thread < kHeadDim) entry.k_norm = pair.k_norm[thread];
    return entry;
  }

  // By a block of kHeadDim threads or more, for whom they are there after a barrier.
  GPU_DEVICE void Put(const Entry& entry, float rope_scale) {
    const int thread = gpu::ThreadX();
    if (thread >= kHeadDim) return;
    q_norm[thread] = entry.q_norm;
    k_norm[thread] = entry.k_norm;
    if (thread >= kHeadDim / 2) return;
    float sin, cos;
    sincosf(static_cast<float>(entry.position) * entry.inv_freq, &sin, &cos);
    sine[thread] = sin * rope_scale;
    cosine[thread] = cos * rope_scale;
  }
};

template <int kHeadDim>
struct StepRow {
  static constexpr int kChunks = kHeadDim / gpu_kernels::kChunk;
  float x[kChunks][8];

  // The column of this lane's first value of a chunk.
  GPU_DEVICE static int Column(int chunk) {
    return chunk * gpu_kernels::kChunk + 8 * (gpu::ThreadX() % 4);
  }

  // Every lane of the wave; a row without weights stays as it is.
  GPU_DEVICE void Norm(const float* weights, float eps) {
    float squares[kChunks] = {};
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      for (const float value : x[c]) squares[c] += value * value;
      if (c > 0) squares[0] += squares[c];
    }
    const float sum = gpu_kernels::RowSum<32>(squares[0]);
    if (weights == nullptr) return;
    const float scale = gpu::InverseRoot(sum / kHeadDim + eps);
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      float by[8];
      gpu_kernels::LoadFloats(ASHLAR_F32, weights, Column(c), by);
#pragma unroll
      for (int i = 0; i < 8; ++i) x[c][i] = x[c][i] * scale * by[i];
    }
  }

  GPU_DEVICE void Rotate(const StepTables<kHeadDim>& tables, ashlar_rope_style style) {
    if (style == ASHLAR_ROPE_HALF) {
#pragma unroll
      for (int c = 0; c < kChunks / 2; ++c) {
        float cosine[8], sine[8];
        gpu_kernels::LoadFloats(ASHLAR_F32, tables.cosine, Column(c), cosine);
        gpu_kernels::LoadFloats(ASHLAR_F32, tables.sine, Column(c), sine);
#pragma unroll
        for (int i = 0; i < 8; ++i) Turn(x[c][i], x[c + kChunks / 2][i], cosine[i], sine[i]);
      }
    } else {
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
        const auto cosine = *reinterpret_cast<const gpu::Four*>(tables.cosine + Column(c) / 2);
        const auto sine = *reinterpret_cast<const gpu::Four*>(tables.sine + Column(c) / 2);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          Turn(x[c][2 * i], x[c][2 * i + 1], cosine.value[i], sine.value[i]);
        }
      }
    }
  }

 private:
  GPU_DEVICE static void Turn(float& x, float& y, float cosine, float sine) {
    const float before = x;
    x = before * cosine - y * sine;
    y = y * cosine + before * sine;
  }
};

}  // namespace ashlar::hopper
