#include "product.h"

namespace ashlar::gpu_kernels {
namespace {

constexpr int kThreads = 256;
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

template <class W, class T, int kTokenTiles>
gpu::Error LaunchTiles(int wave, gpu::Stream stream, const MatmulParams& p) {
  using Shape = MatmulShape<kTokenTiles>;
  const gpu::Grid grid{
      static_cast<unsigned>((p.rows + Shape::kBlockRows - 1) / Shape::kBlockRows),
      static_cast<unsigned>((p.tokens + Shape::kBlockTokens - 1) / Shape::kBlockTokens)};
  return gpu::WithWave(wave, [&](auto width) {
    constexpr int kWave = width;
    return gpu::Launch(stream, grid, Shape::kWaves * kWave, Shape::kSharedBytes,
                       MatmulKernel<T, kWave, kTokenTiles, W>, p);
  });
}

template <class W, class T>
gpu::Error LaunchOwn(int wave, gpu::Stream stream, const MatmulParams& p) {
  if (p.tokens <= kTile) return LaunchTiles<W, T, 1>(wave, stream, p);
  return LaunchTiles<W, T, 4>(wave, stream, p);
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
                       ashlar_dtype type, void* room, const XNorm& norm = {}) {
  BlasMatmul m{};
  m.x = p.x;
  m.x_pitch = p.x_row_bytes / ElementBytes(p.x_dtype);
  if (type == ASHLAR_F8_E4M3) {
    const gpu::Error error = LaunchQuantize(device->facts.wave, stream, p, norm, room);
    if (error != gpu::kSuccess) return gpu::Text(error);
    m.x = room;
    m.x_pitch = p.pitch;
    m.x_scales = F8Scales(p, room);
    m.weight_scales = p.scales;
  } else if (p.x_dtype != type || !IsPadded(p.x, p.x_row_bytes, p.cols, p.pitch)) {
    const gpu::Error error = LaunchConvert(stream, p, type, room);
    if (error != gpu::kSuccess) return gpu::Text(error);
    m.x = room;
    m.x_pitch = p.pitch;
  }
  m.type = type;
  m.out_type = p.out_dtype;
  m.weight = p.weight;
  m.weight_pitch = p.pitch;
  m.residual = p.residual;
  m.residual_pitch = p.residual_row_bytes / ElementBytes(p.out_dtype);
  m.out = p.out;
  m.out_pitch = p.out_row_bytes / ElementBytes(p.out_dtype);
  m.m = p.tokens;
  m.n = p.rows;
  m.k = p.pitch;
  std::string problem = device->Products()->Matmul(stream, m);
  if (!problem.empty() || p.bias == nullptr) return problem;
  const gpu::Grid grid{static_cast<unsigned>((p.rows + kThreads - 1) / kThreads),
                       static_cast<unsigned>(p.tokens)};
  const gpu::Error error = gpu::Launch(stream, grid, kThreads, 0, AddBiasKernel, p);
  return error == gpu::kSuccess ? "" : gpu::Text(error);
}

}  // namespace

bool IsPadded(const void* data, int64_t row_bytes, int64_t cols, int64_t pitch) {
  return cols == pitch && row_bytes % 16 == 0 && reinterpret_cast<uintptr_t>(data) % 16 == 0;
}

gpu::Error LaunchConvert(gpu::Stream stream, const MatmulParams& p, ashlar_dtype type, void* to) {
  const int64_t blocks = (p.tokens * p.pitch + kThreads - 1) / kThreads;
  const gpu::Grid grid{static_cast<unsigned>(blocks < 4096 ? blocks : 4096)};
  return gpu::Launch(stream, grid, kThreads, 0, ConvertKernel, p, type, to, p.pitch);
}

bool LaunchNormedF8(ashlar_device* device, gpu::Stream stream, const MatmulParams& p,
                    const XNorm& norm, void* room) {
  return p.tokens > kMostOwnTokens && device->Products() != nullptr &&
         LaunchBlas(device, stream, p, ASHLAR_F8_E4M3, room, norm).empty();
}

int LaunchProduct(ashlar_device* device, gpu::Stream stream, const MatmulParams& p,
                  ashlar_dtype type, void* room) {
  if (type == ASHLAR_F32) return Checked(LaunchFloat(device->facts.wave, stream, p), "matmul");
  if (p.tokens > kMostOwnTokens && device->Products() != nullptr &&
      LaunchBlas(device, stream, p, type, room).empty()) {
    return ASHLAR_OK;
  }
  const int wave = device->facts.wave;
  return Checked(type == ASHLAR_F8_E4M3 ? LaunchOwn<F8, BF16>(wave, stream, p)
                 : type == ASHLAR_BF16  ? LaunchOwn<BF16, BF16>(wave, stream, p)
                                        : LaunchOwn<F16, F16>(wave, stream, p),
                 "matmul");
}

}  // namespace ashlar::gpu_kernels
