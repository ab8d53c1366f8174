// out = x * weight^T + bias, part by part. The vendor's library multiplies large batches, after x
// is brought to the weight's type; own kernels the rest, and everything where there is no library.
#include "device.h"
#include "matmul_kernel.h"
#include "ops.h"
#include "shapes.h"
#include "weight.h"

namespace ashlar::gpu_kernels {
namespace {

constexpr int kMostOwnTokens = 16;  // beyond it a library's blocked product is faster

// x as T, rows padded with zeros to `pitch`.
GPU_KERNEL void ConvertKernel(const MatmulParams p, ashlar_dtype type, void* to, int64_t pitch) {
  gpu::ReleaseNext();
  gpu::WaitForPrevious();
  const int64_t total = p.tokens * pitch;
  for (int64_t i = int64_t{gpu::BlockX()} * gpu::ThreadsX() + gpu::ThreadX(); i < total;
       i += int64_t{gpu::GridX()} * gpu::ThreadsX()) {
    const int64_t token = i / pitch, col = i % pitch;
    const char* row = static_cast<const char*>(p.x) + token * p.x_row_bytes;
    StoreAs(type, to, i, col < p.cols ? LoadAs(p.x_dtype, row, col) : 0.0f);
  }
}

GPU_KERNEL void AddBiasKernel(const MatmulParams p) {
  gpu::ReleaseNext();
  gpu::WaitForPrevious();
  char* row = static_cast<char*>(p.out) + gpu::BlockY() * p.out_row_bytes;
  const int col = gpu::BlockX() * gpu::ThreadsX() + gpu::ThreadX();
  if (col < p.rows) StoreAs(p.out_dtype, row, col, LoadAs(p.out_dtype, row, col) + p.bias[col]);
}

template <class T, int kTokenTiles>
gpu::Error LaunchTiles(int wave, gpu::Stream stream, const MatmulParams& p) {
  using Shape = MatmulShape<kTokenTiles>;
  const gpu::Grid grid{
      static_cast<unsigned>((p.rows + Shape::kBlockRows - 1) / Shape::kBlockRows),
      static_cast<unsigned>((p.tokens + Shape::kBlockTokens - 1) / Shape::kBlockTokens)};
  return gpu::WithWave(wave, [&](auto width) {
    constexpr int kWave = width;
    return gpu::Launch(stream, grid, Shape::kWaves * kWave, Shape::kSharedBytes,
                       MatmulKernel<T, kWave, kTokenTiles>, p);
  });
}

template <class T>
gpu::Error LaunchOwn(int wave, gpu::Stream stream, const MatmulParams& p) {
  if (p.tokens <= kTile) return LaunchTiles<T, 1>(wave, stream, p);
  return LaunchTiles<T, 4>(wave, stream, p);
}

gpu::Error LaunchFloat(int wave, gpu::Stream stream, const MatmulParams& p) {
  constexpr unsigned kRows = 8;
  const gpu::Grid grid{(static_cast<unsigned>(p.rows) + kRows - 1) / kRows,
                       static_cast<unsigned>(p.tokens)};
  return gpu::WithWave(wave, [&](auto width) {
    constexpr int kWave = width;
    return gpu::Launch(stream, grid, kRows * kWave, 0, FloatMatmulKernel<kWave>, p);
  });
}

// By the library; the reason why not otherwise.
std::string LaunchBlas(ashlar_device* device, gpu::Stream stream, const MatmulParams& p,
                       ashlar_dtype type) {
  constexpr int kThreads = 256;
  const void* x = p.x;
  int64_t x_pitch = p.x_row_bytes / ElementBytes(p.x_dtype);
  if (p.x_dtype != type || p.cols != p.pitch || !p.x_aligned) {
    void* converted = device->Scratch(p.tokens * p.pitch * ElementBytes(type));
    if (converted == nullptr) return "out of memory";
    const int64_t blocks = (p.tokens * p.pitch + kThreads - 1) / kThreads;
    const gpu::Grid grid{static_cast<unsigned>(blocks < 4096 ? blocks : 4096)};
    const gpu::Error error =
        gpu::Launch(stream, grid, kThreads, 0, ConvertKernel, p, type, converted, p.pitch);
    if (error != gpu::kSuccess) return gpu::Text(error);
    x = converted;
    x_pitch = p.pitch;
  }
  std::string problem = device->blas->Matmul(
      stream, {type, p.out_dtype, x, p.weight, p.out, p.tokens, p.rows, p.pitch, x_pitch, p.pitch,
               p.out_row_bytes / ElementBytes(p.out_dtype)});
  if (!problem.empty() || p.bias == nullptr) return problem;
  const gpu::Grid grid{static_cast<unsigned>((p.rows + kThreads - 1) / kThreads),
                       static_cast<unsigned>(p.tokens)};
  const gpu::Error error = gpu::Launch(stream, grid, kThreads, 0, AddBiasKernel, p);
  return error == gpu::kSuccess ? "" : gpu::Text(error);
}

int LaunchPart(ashlar_device* device, gpu::Stream stream, const MatmulParams& p,
               ashlar_dtype type) {
  if (type == ASHLAR_F32) return Checked(LaunchFloat(device->facts.wave, stream, p), "matmul");
  if (device->blas != nullptr && p.tokens > kMostOwnTokens &&
      LaunchBlas(device, stream, p, type).empty()) {
    return ASHLAR_OK;
  }
  return Checked(type == ASHLAR_BF16 ? LaunchOwn<BF16>(device->facts.wave, stream, p)
                                     : LaunchOwn<F16>(device->facts.wave, stream, p),
                 "matmul");
}

}  // namespace

int Matmul(ashlar_device* device, ashlar_stream* stream, ashlar_tensor out, ashlar_tensor x,
           const ashlar_weight* weight, ashlar_tensor bias) {
  std::string problem = CheckMatrix("matmul x", x, -1, weight->cols);
  if (problem.empty()) problem = CheckMatrix("matmul out", out, x.shape[0], weight->rows);
  if (problem.empty() && bias.data != nullptr) {
    problem = CheckVector("matmul bias", bias, weight->rows);
  }
  if (!problem.empty()) return Failed(problem);
  if (x.shape[0] == 0) return ASHLAR_OK;
  if (Checked(gpu::UseDevice(device->index), "matmul") != ASHLAR_OK) return ASHLAR_FAILED;

  MatmulParams p{};
  p.pitch = weight->pitch;
  p.x = x.data;
  p.x_dtype = x.dtype;
  p.x_row_bytes = x.stride[0];
  p.tokens = static_cast<int>(x.shape[0]);
  p.cols = static_cast<int>(weight->cols);
  p.x_aligned = weight->cols % 8 == 0 && x.stride[0] % 16 == 0 &&
                reinterpret_cast<uintptr_t>(x.data) % 16 == 0;
  p.out_dtype = out.dtype;
  p.out_row_bytes = out.stride[0];
  for (const ashlar_weight::Part& part : weight->parts) {
    p.weight = part.data;
    p.rows = static_cast<int>(part.rows);
    p.out = static_cast<char*>(out.data) + part.first_row * ElementBytes(out.dtype);
    p.bias = bias.data == nullptr ? nullptr : static_cast<const float*>(bias.data) + part.first_row;
    if (LaunchPart(device, StreamOf(stream), p, part.dtype) != ASHLAR_OK) return ASHLAR_FAILED;
  }
  return ASHLAR_OK;
}

}  // namespace ashlar::gpu_kernels
