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

template <int kWave, bool kAdd>
GPU_KERNEL void RmsNormKernel(const ashlar_tensor out, const ashlar_tensor sum,
                              const ashlar_tensor x, const float* weight, float eps) {
  if constexpr (gpu::RunsWave<kWave>()) {
    gpu::ReleaseNext();
    gpu::WaitForPrevious();
    const int64_t row = gpu::BlockX();
    const int cols = static_cast<int>(x.shape[1]);
    const ashlar_tensor& read = kAdd ? sum : x;
    char* values = static_cast<char*>(read.data) + row * read.stride[0];
    const char* added = static_cast<const char*>(x.data) + row * x.stride[0];
    float squares = 0;
    for (int col = gpu::ThreadX(); col < cols; col += kThreads) {
      float value = LoadAs(read.dtype, values, col);
      if constexpr (kAdd) {
        value += LoadAs(x.dtype, added, col);
        StoreAs(read.dtype, values, col, value);
      }
      squares += value * value;
    }
    squares = BlockSum<kWave>(squares, reinterpret_cast<float*>(gpu::SharedMemory()));
    const float scale = 1.0f / sqrtf(squares / static_cast<float>(cols) + eps);
    char* to = static_cast<char*>(out.data) + row * out.stride[0];
    for (int col = gpu::ThreadX(); col < cols; col += kThreads) {
      StoreAs(out.dtype, to, col, LoadAs(read.dtype, values, col) * scale * weight[col]);
    }
  }
}

template <bool kAdd>
int LaunchNorm(ashlar_device* device, ashlar_stream* stream, const ashlar_tensor& out,
               const ashlar_tensor& sum, const ashlar_tensor& x, const ashlar_tensor& weight,
               float eps, const char* name) {
  if (x.shape[0] == 0) return ASHLAR_OK;
  if (Checked(gpu::UseDevice(device->index), name) != ASHLAR_OK) return ASHLAR_FAILED;
  const gpu::Error error = gpu::WithWave(device->facts.wave, [&](auto wave) {
    constexpr int kWave = wave;
    return gpu::Launch(StreamOf(stream), {static_cast<unsigned>(x.shape[0])}, kThreads,
                       kThreads / kWave * sizeof(float), RmsNormKernel<kWave, kAdd>, out, sum, x,
                       static_cast<const float*>(weight.data), eps);
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
