// out = x / sqrt(mean(x^2) + eps) * weight, one block a row. Bound by bytes.
#include <cmath>

#include "common/shapes.h"
#include "device.h"
#include "number.h"
#include "ops.h"
#include "wave.h"

namespace ashlar::gpu_kernels {
namespace {

constexpr int kThreads = 256;

struct NormParams {
  ashlar_tensor out, x;
  const float* weight;
  float eps;
};

GPU_DEVICE float Scale(const NormParams& p, float squares) {
  return 1.0f / sqrtf(squares / static_cast<float>(p.x.shape[1]) + p.eps);
}

template <int kWave>
GPU_KERNEL void RmsNormKernel(const NormParams p) {
  if constexpr (gpu::RunsWave<kWave>()) {
    gpu::ReleaseNext();
    gpu::WaitForPrevious();
    const int64_t row = gpu::BlockX();
    const int cols = static_cast<int>(p.x.shape[1]);
    const char* from = static_cast<const char*>(p.x.data) + row * p.x.stride[0];
    float squares = 0;
    for (int col = gpu::ThreadX(); col < cols; col += kThreads) {
      const float value = LoadAs(p.x.dtype, from, col);
      squares += value * value;
    }
    squares = BlockSum<kWave>(squares, reinterpret_cast<float*>(gpu::SharedMemory()));
    const float scale = Scale(p, squares);
    char* to = static_cast<char*>(p.out.data) + row * p.out.stride[0];
    for (int col = gpu::ThreadX(); col < cols; col += kThreads) {
      StoreAs(p.out.dtype, to, col, LoadAs(p.x.dtype, from, col) * scale * p.weight[col]);
    }
  }
}

// By eights; a thread keeps its kKeep of them.
template <int kWave, int kKeep>
GPU_KERNEL void GPU_BOUNDS(kThreads) EightsNormKernel(const NormParams p) {
  if constexpr (gpu::RunsWave<kWave>()) {
    gpu::ReleaseNext();
    gpu::WaitForPrevious();
    const int64_t row = gpu::BlockX();
    const int cols = static_cast<int>(p.x.shape[1]), first = 8 * gpu::ThreadX();
    const char* from = static_cast<const char*>(p.x.data) + row * p.x.stride[0];
    float value[kKeep][8];
    float squares = 0;
#pragma unroll
    for (int i = 0; i < kKeep; ++i) {
      const int col = first + i * 8 * kThreads;
      if (col >= cols) break;
      LoadFloats(p.x.dtype, from, col, value[i]);
    }
#pragma unroll
    for (int i = 0; i < kKeep; ++i) {
      if (first + i * 8 * kThreads >= cols) break;
      for (const float each : value[i]) squares += each * each;
    }
    // On their way while the threads wait for each other.
    float by[kKeep][8];
#pragma unroll
    for (int i = 0; i < kKeep; ++i) {
      const int col = first + i * 8 * kThreads;
      if (col < cols) LoadFloats(ASHLAR_F32, p.weight, col, by[i]);
    }
    squares = BlockSum<kWave>(squares, reinterpret_cast<float*>(gpu::SharedMemory()));
    const float scale = Scale(p, squares);
    char* to = static_cast<char*>(p.out.data) + row * p.out.stride[0];
#pragma unroll
    for (int i = 0; i < kKeep; ++i) {
      const int col = first + i * 8 * kThreads;
      if (col >= cols) break;
      for (int j = 0; j < 8; ++j) by[i][j] *= value[i][j] * scale;
      StoreFloats(p.out.dtype, to, col, by[i]);
    }
  }
}

template <int kWave>
gpu::Error Launch(gpu::Stream stream, const NormParams& p) {
  const auto launch = [&](void (*kernel)(NormParams)) {
    return gpu::Launch(stream, {static_cast<unsigned>(p.x.shape[0])}, kThreads,
                       kThreads / kWave * sizeof(float), kernel, p);
  };
  const bool eights =
      HasEights(p.x) && HasEights(p.out) && reinterpret_cast<uintptr_t>(p.weight) % 16 == 0;
  constexpr int kOnce = 8 * kThreads;
  if (eights && p.x.shape[1] <= kOnce) return launch(EightsNormKernel<kWave, 1>);
  if (eights && p.x.shape[1] <= 2 * kOnce) return launch(EightsNormKernel<kWave, 2>);
  if (eights && p.x.shape[1] <= 4 * kOnce) return launch(EightsNormKernel<kWave, 4>);
  return launch(RmsNormKernel<kWave>);
}

}  // namespace

int RmsNorm(ashlar_device* device, ashlar_stream* stream, ashlar_tensor out, ashlar_tensor x,
            ashlar_tensor weight, float eps) {
  std::string problem = CheckMatrix("rms_norm x", x, -1, -1, kFloats);
  if (problem.empty()) problem = CheckMatrix("rms_norm out", out, x.shape[0], x.shape[1], kFloats);
  if (problem.empty()) problem = CheckVector("rms_norm weight", weight, x.shape[1]);
  if (!problem.empty()) return Failed(problem);
  if (x.shape[0] == 0) return ASHLAR_OK;
  if (Checked(gpu::UseDevice(device->index), "rms_norm") != ASHLAR_OK) return ASHLAR_FAILED;
  const NormParams p{out, x, static_cast<const float*>(weight.data), eps};
  const gpu::Error error = gpu::WithWave(device->facts.wave, [&](auto wave) {
    constexpr int kWave = wave;
    return Launch<kWave>(StreamOf(device, stream), p);
  });
  return Checked(error, "rms_norm");
}

}  // namespace ashlar::gpu_kernels
