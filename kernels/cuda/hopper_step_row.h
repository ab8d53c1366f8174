// A head of one token as four neighbouring lanes prepare it: lane l has eight values of each chunk,
// as the products take them, and with them both of each pair that a rotary embedding turns.
#pragma once

#include "gpu/matrix.h"

namespace ashlar::hopper {

// In shared memory, by column or by pair; what the preparation has none of is not read.
template <int kHeadDim>
struct StepTables {
  float cosine[kHeadDim / 2], sine[kHeadDim / 2], q_norm[kHeadDim], k_norm[kHeadDim];

  // Of the one token; by a block of kHeadDim threads or more, for whom it is there after a barrier.
  GPU_DEVICE void Fill(const ashlar_qkv_prepare& a) {
    const int thread = gpu::ThreadX();
    if (a.inv_freq != nullptr && thread < kHeadDim / 2) {
      const float angle = static_cast<float>(a.positions[0]) * a.inv_freq[thread];
      float sin, cos;
      sincosf(angle, &sin, &cos);
      sine[thread] = sin * a.rope_scale;
      cosine[thread] = cos * a.rope_scale;
    }
    if (thread >= kHeadDim) return;
    const auto* q = static_cast<const float*>(a.q_norm.data);
    const auto* k = static_cast<const float*>(a.k_norm.data);
    if (q != nullptr) q_norm[thread] = q[thread];
    if (k != nullptr) k_norm[thread] = k[thread];
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
