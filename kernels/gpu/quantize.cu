// Rows to float8, one block a row: the largest value becomes the largest float8. Bound by bytes.
#include <cmath>

#include "block.h"
#include "number.h"
#include "quantize.h"

namespace ashlar::gpu_kernels {
namespace {

constexpr int kThreads = 256;

template <int kWave>
GPU_KERNEL void GPU_BOUNDS(kThreads) ToF8Kernel(const F8Rows p, bool eights) {
  gpu::ReleaseNext();
  gpu::WaitForPrevious();
  if constexpr (gpu::RunsWave<kWave>()) {
    const int64_t row = gpu::BlockX();
    const char* from = static_cast<const char*>(p.from) + row * p.cols * ElementBytes(p.dtype);
    float values[8];
    const auto load = [&](int64_t col) {
      if (eights && col < p.cols) {
        LoadFloats(p.dtype, from, col, values);
      } else {
        for (int i = 0; i < 8; ++i) {
          values[i] = col + i < p.cols ? LoadAs(p.dtype, from, col + i) : 0.0f;
        }
      }
    };
    float largest = 0, nothing = 0;
    for (int64_t col = 8 * gpu::ThreadX(); col < p.pitch; col += 8 * kThreads) {
      load(col);
      for (float value : values) {
        largest = fmaxf(largest, fabsf(value));
        nothing += value * 0.0f;  // NaN when it is not finite
      }
    }
    auto* scratch = reinterpret_cast<float*>(gpu::SharedMemory());
    largest = BlockReduce<kWave>(largest, scratch, [](float a, float b) { return fmaxf(a, b); });
    nothing = BlockReduce<kWave>(nothing, scratch, [](float a, float b) { return a + b; });
    const float inverse = largest > 0 ? kLargestF8 / largest : 0;
    auto* to = reinterpret_cast<EightF8*>(static_cast<char*>(p.to) + row * p.pitch);
    for (int64_t col = 8 * gpu::ThreadX(); col < p.pitch; col += 8 * kThreads) {
      load(col);
      to[col / 8] = PackEightF8(values, inverse);
    }
    if (gpu::ThreadX() == 0) p.scales[row] = largest / kLargestF8 + nothing;
  }
}

}  // namespace

gpu::Error LaunchToF8(int wave, gpu::Stream stream, int64_t rows, const F8Rows& p) {
  const bool eights = p.cols % 8 == 0 && reinterpret_cast<uintptr_t>(p.from) % 16 == 0;
  return gpu::WithWave(wave, [&](auto width) {
    constexpr int kWave = width;
    return gpu::Launch(stream, {static_cast<unsigned>(rows)}, kThreads,
                       kThreads / kWave * sizeof(float), ToF8Kernel<kWave>, p, eights);
  });
}

}  // namespace ashlar::gpu_kernels
