#include "block.h"
#include "quantize_x.h"

namespace ashlar::gpu_kernels {
namespace {

constexpr int kThreads = 256;

struct QuantizeParams {
  const void* x;
  ashlar_dtype dtype;
  int64_t row_bytes;
  int cols, pitch;
  XNorm norm;
  void* to;
  float* scales;
};

// What stands ahead of a row of float8: its largest value becomes the largest there is. A norm's
// factor of a row is its scale's alone.
template <int kWave>
GPU_DEVICE float RowInverse(const QuantizeParams& p, int token, float largest, float squares) {
  auto* scratch = reinterpret_cast<float*>(gpu::SharedMemory());
  largest = BlockReduce<kWave>(largest, scratch, [](float a, float b) { return fmaxf(a, b); });
  float factor = 1 / kLargestF8;
  if (p.norm.weight != nullptr) {
    squares = BlockReduce<kWave>(squares, scratch, [](float a, float b) { return a + b; });
    factor /= sqrtf(squares / static_cast<float>(p.cols) + p.norm.eps);
  }
  if (gpu::ThreadX() == 0) p.scales[token] = largest * factor;
  return largest > 0 ? kLargestF8 / largest : 0;
}

GPU_DEVICE void StoreEight(const QuantizeParams& p, int token, int col, const float* values,
                           float inverse) {
  auto* out = reinterpret_cast<EightF8*>(static_cast<char*>(p.to) + int64_t{token} * p.pitch);
  out[col / 8] = PackEightF8(values, inverse);
}

// Rows of any kind, one block a token: read twice.
template <int kWave>
GPU_KERNEL void GPU_BOUNDS(kThreads) QuantizeKernel(const QuantizeParams p) {
  gpu::ReleaseNext();
  gpu::WaitForPrevious();
  if constexpr (gpu::RunsWave<kWave>()) {
    const int token = gpu::BlockX();
    const char* row = static_cast<const char*>(p.x) + token * p.row_bytes;
    float largest = 0, squares = 0, values[8];
    const auto load = [&](int col) {
      for (int i = 0; i < 8; ++i) {
        values[i] = col + i < p.cols ? LoadAs(p.dtype, row, col + i) : 0.0f;
        if (p.norm.weight == nullptr) continue;
        squares += values[i] * values[i];
        if (col + i < p.cols) values[i] *= p.norm.weight[col + i];
      }
    };
    for (int col = 8 * gpu::ThreadX(); col < p.pitch; col += 8 * kThreads) {
      load(col);
      for (float value : values) largest = fmaxf(largest, fabsf(value));
    }
    const float inverse = RowInverse<kWave>(p, token, largest, squares);
    for (int col = 8 * gpu::ThreadX(); col < p.pitch; col += 8 * kThreads) {
      load(col);
      StoreEight(p, token, col, values, inverse);
    }
  }
}

// Rows of whole eights of 16-bit values: a thread keeps its kKeep of them, and with kEarly a norm's
// weights for them, which are there before the kernels ahead have ended.
template <int kWave, int kThreads, int kKeep, bool kEarly>
GPU_KERNEL void GPU_BOUNDS(kThreads) EightsQuantizeKernel(const QuantizeParams p) {
  gpu::ReleaseNext();
  const int token = gpu::BlockX(), first = 8 * gpu::ThreadX();
  const bool normed = p.norm.weight != nullptr;
  float by[kEarly ? kKeep : 1][8];
  if constexpr (kEarly) {
#pragma unroll
    for (int i = 0; i < kKeep; ++i) {
      const int col = first + i * 8 * kThreads;
      if (normed && col < p.cols) LoadFloats(ASHLAR_F32, p.norm.weight, col, by[i]);
    }
  }
  gpu::WaitForPrevious();
  if constexpr (gpu::RunsWave<kWave>()) {
    const auto* row =
        reinterpret_cast<const gpu::Vector*>(static_cast<const char*>(p.x) + token * p.row_bytes);
    gpu::Vector kept[kKeep];
#pragma unroll
    for (int i = 0; i < kKeep; ++i) {
      const int col = first + i * 8 * kThreads;
      kept[i] = {};
      if (col < p.cols) kept[i] = row[col / 8];
    }
    float largest = 0, squares = 0, values[8];
    const auto load = [&](int i) {
      const int col = first + i * 8 * kThreads;
      UnpackFloats(p.dtype, kept[i], values);
      if (!normed || col >= p.cols) return;
      if constexpr (!kEarly) LoadFloats(ASHLAR_F32, p.norm.weight, col, by[0]);
      for (int j = 0; j < 8; ++j) {
        squares += values[j] * values[j];
        values[j] *= by[kEarly ? i : 0][j];
      }
    };
#pragma unroll
    for (int i = 0; i < kKeep; ++i) {
      load(i);
      for (float value : values) largest = fmaxf(largest, fabsf(value));
    }
    const float inverse = RowInverse<kWave>(p, token, largest, squares);
#pragma unroll
    for (int i = 0; i < kKeep; ++i) {
      const int col = first + i * 8 * kThreads;
      if (col >= p.pitch) break;
      load(i);
      StoreEight(p, token, col, values, inverse);
    }
  }
}

}  // namespace

const float* F8Scales(const MatmulParams& p, const void* quantized) {
  return reinterpret_cast<const float*>(static_cast<const char*>(quantized) + p.tokens * p.pitch);
}

gpu::Error LaunchQuantize(int wave, gpu::Stream stream, const MatmulParams& p, const XNorm& norm,
                          void* to) {
  QuantizeParams q{p.x,
                   p.x_dtype,
                   p.x_row_bytes,
                   p.cols,
                   static_cast<int>(p.pitch),
                   norm,
                   to,
                   const_cast<float*>(F8Scales(p, to))};
  return gpu::WithWave(wave, [&](auto width) {
    constexpr int kWave = width;
    const auto launch = [&](unsigned threads, void (*kernel)(QuantizeParams)) {
      return gpu::Launch(stream, {static_cast<unsigned>(p.tokens)}, threads,
                         threads / kWave * sizeof(float), kernel, q);
    };
    const bool eights = p.x_aligned && p.x_dtype != ASHLAR_F32 &&
                        reinterpret_cast<uintptr_t>(norm.weight) % 16 == 0;
    if (eights && q.pitch <= 2 * 8 * 256) {
      return launch(256, EightsQuantizeKernel<kWave, 256, 2, true>);
    }
    if (eights && q.pitch <= 4 * 8 * 512) {
      return launch(512, EightsQuantizeKernel<kWave, 512, 4, false>);
    }
    return launch(kThreads, QuantizeKernel<kWave>);
  });
}

}  // namespace ashlar::gpu_kernels
