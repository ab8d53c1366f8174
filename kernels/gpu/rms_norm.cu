// out = x / sqrt(mean(x^2) + eps) * weight, one block a row; with kAdd x is first added to a
// running sum, which the norm then reads. Bound by bytes.
#include <cmath>

#include "device.h"
#include "number.h"
#include "ops.h"
#include "shapes.h"
#include "wave.h"

namespace ashlar::gpu_kernels {
namespace {

constexpr int kThreads = 256;

struct NormParams {
  ashlar_tensor out, sum, x;  // sum is x without kAdd
  const float* weight;
  float eps;
};

GPU_DEVICE float Scale(const NormParams& p, float squares) {
  return 1.0f / sqrtf(squares / static_cast<float>(p.x.shape[1]) + p.eps);
}

template <int kWave, bool kAdd>
GPU_KERNEL void RmsNormKernel(const NormParams p) {
  if constexpr (gpu::RunsWave<kWave>()) {
    gpu::ReleaseNext();
    gpu::WaitForPrevious();
    const int64_t row = gpu::BlockX();
    const int cols = static_cast<int>(p.x.shape[1]);
    char* values = static_cast<char*>(p.sum.data) + row * p.sum.stride[0];
    const char* added = static_cast<const char*>(p.x.data) + row * p.x.stride[0];
    float squares = 0;
    for (int col = gpu::ThreadX(); col < cols; col += kThreads) {
      float value = LoadAs(p.sum.dtype, values, col);
      if constexpr (kAdd) {
        value += LoadAs(p.x.dtype, added, col);
        StoreAs(p.sum.dtype, values, col, value);
      }
      squares += value * value;
    }
    squares = BlockSum<kWave>(squares, reinterpret_cast<float*>(gpu::SharedMemory()));
    const float scale = Scale(p, squares);
    char* to = static_cast<char*>(p.out.data) + row * p.out.stride[0];
    for (int col = gpu::ThreadX(); col < cols; col += kThreads) {
      StoreAs(p.out.dtype, to, col, LoadAs(p.sum.dtype, values, col) * scale * p.weight[col]);
    }
  }
}

// By eights; a thread keeps its kKeep of them.
template <int kWave, bool kAdd, int kKeep>
GPU_KERNEL void GPU_BOUNDS(kThreads) EightsNormKernel(const NormParams p) {
  if constexpr (gpu::RunsWave<kWave>()) {
    gpu::ReleaseNext();
    gpu::WaitForPrevious();
    const int64_t row = gpu::BlockX();
    const int cols = static_cast<int>(p.x.shape[1]), first = 8 * gpu::ThreadX();
    char* sums = static_cast<char*>(p.sum.data) + row * p.sum.stride[0];
    const char* added = static_cast<const char*>(p.x.data) + row * p.x.stride[0];
    float value[kKeep][8];
    float squares = 0;
#pragma unroll
    for (int i = 0; i < kKeep; ++i) {
      const int col = first + i * 8 * kThreads;
      if (col >= cols) break;
      LoadFloats(p.sum.dtype, sums, col, value[i]);
      if constexpr (kAdd) {
        float more[8];
        LoadFloats(p.x.dtype, added, col, more);
        for (int j = 0; j < 8; ++j) value[i][j] += more[j];
      }
    }
#pragma unroll
    for (int i = 0; i < kKeep; ++i) {
      const int col = first + i * 8 * kThreads;
      if (col >= cols) break;
      if constexpr (kAdd) {  // the norm is of the sum as it is stored
        StoreFloats(p.sum.dtype, sums, col, value[i]);
        for (float& each : value[i]) each = Rounded(p.sum.dtype, each);
      }
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

template <int kWave, bool kAdd>
gpu::Error Launch(gpu::Stream stream, const NormParams& p) {
  const auto launch = [&](void (*kernel)(NormParams)) {
    return gpu::Launch(stream, {static_cast<unsigned>(p.x.shape[0])}, kThreads,
                       kThreads / kWave * sizeof(float), kernel, p);
  };
  const bool eights = HasEights(p.x) && HasEights(p.sum) && HasEights(p.out) &&
                      reinterpret_cast<uintptr_t>(p.weight) % 16 == 0;
  constexpr int kOnce = 8 * kThreads;
  if (eights && p.x.shape[1] <= kOnce) return launch(EightsNormKernel<kWave, kAdd, 1>);
  if (eights && p.x.shape[1] <= 2 * kOnce) return launch(EightsNormKernel<kWave, kAdd, 2>);
  if (eights && p.x.shape[1] <= 4 * kOnce) return launch(EightsNormKernel<kWave, kAdd, 4>);
  return launch(RmsNormKernel<kWave, kAdd>);
}

template <bool kAdd>
int LaunchNorm(ashlar_device* device, ashlar_stream* stream, const ashlar_tensor& out,
               const ashlar_tensor& sum, const ashlar_tensor& x, const ashlar_tensor& weight,
               float eps, const char* name) {
  if (x.shape[0] == 0) return ASHLAR_OK;
  if (Checked(gpu::UseDevice(device->index), name) != ASHLAR_OK) return ASHLAR_FAILED;
  const NormParams p{out, sum, x, static_cast<const float*>(weight.data), eps};
  const gpu::Error error = gpu::WithWave(device->facts.wave, [&](auto wave) {
    constexpr int kWave = wave;
    return Launch<kWave, kAdd>(StreamOf(device, stream), p);
  });
  return Checked(error, name);
}

}  // namespace

int RmsNorm(ashlar_device* device, ashlar_stream* stream, ashlar_tensor out, ashlar_tensor x,
            ashlar_tensor weight, float eps) {
  std::string problem = CheckMatrix("rms_norm x", x, -1, -1);
  if (problem.empty()) problem = CheckMatrix("rms_norm out", out, x.shape[0], x.shape[1]);
  if (problem.empty()) problem = CheckVector("rms_norm weight", weight, x.shape[1]);
  if (!problem.empty()) return Failed(problem);
  return LaunchNorm<false>(device, stream, out, x, x, weight, eps, "rms_norm");
}

int AddRmsNorm(ashlar_device* device, ashlar_stream* stream, ashlar_tensor out, ashlar_tensor sum,
               ashlar_tensor x, ashlar_tensor weight, float eps) {
  std::string problem = CheckMatrix("add_rms_norm x", x, -1, -1);
  if (problem.empty()) problem = CheckMatrix("add_rms_norm sum", sum, x.shape[0], x.shape[1]);
  if (problem.empty()) problem = CheckMatrix("add_rms_norm out", out, x.shape[0], x.shape[1]);
  if (problem.empty()) problem = CheckVector("add_rms_norm weight", weight, x.shape[1]);
  if (!problem.empty()) return Failed(problem);
  return LaunchNorm<true>(device, stream, out, sum, x, weight, eps, "add_rms_norm");
}

}  // namespace ashlar::gpu_kernels
