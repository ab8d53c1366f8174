// Shares a matmul among the threads: tiles of 16 output rows, in runs.
#include "common/shapes.h"
#include "ops.h"

namespace ashlar::cpu {
namespace {

// x as 8-bit codes, in the device's scratch; codes null without memory.
QuantRows Quantize(ashlar_device& device, const ashlar_tensor& x) {
  const int64_t m = x.shape[0], k = x.shape[1], blocks = k / 32;
  auto* codes = device.x_codes.Get<int8_t>(m * k);
  auto* scale = device.x_scale.Get<float>(m * blocks * 2);
  auto* half_sum = device.x_half_sum.Get<int32_t>(m * blocks * 2);
  if (codes == nullptr || scale == nullptr || half_sum == nullptr) return {};
  float* scaled_sum = scale + m * blocks;
  ForRanges(device, m, k * 4, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i)
      device.kernels.quantize_row(Row(x, i), k, codes + i * k, scale + i * blocks,
                                  scaled_sum + i * blocks, half_sum + i * blocks * 2);
  });
  return {codes, scale, scaled_sum, half_sum, m, k};
}

// Where QuantMatmul's sums begin for a part, or null without memory.
const int32_t* Starts(Scratch& scratch, const WeightPart& part, const QuantRows& x) {
  const bool halves = part.dtype == ASHLAR_Q6_K;
  const int64_t count = x.m * x.k / (halves ? 16 : 32);
  auto* start = scratch.Get<int32_t>(count);
  if (start == nullptr) return nullptr;
  if (halves)
    for (int64_t i = 0; i < count; ++i) start[i] = -part.offset * x.half_sum[i];
  else
    for (int64_t i = 0; i < count; ++i)
      start[i] = -part.offset * (x.half_sum[2 * i] + x.half_sum[2 * i + 1]);
  return start;
}

struct Bf16Rows {
  uint16_t* data = nullptr;
  int64_t stride = 0;  // elements, a multiple of 32, zeros behind k
};
Bf16Rows ToBf16(ashlar_device& device, const ashlar_tensor& x) {
  const int64_t m = x.shape[0], k = x.shape[1], stride = (k + 31) / 32 * 32;
  auto* rows = device.x_bf16.Get<uint16_t>(m * stride);
  if (rows == nullptr) return {};
  ForRanges(device, m, k * 4, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      device.kernels.from_floats(rows + i * stride, ASHLAR_BF16, Row(x, i), k);
      for (int64_t j = k; j < stride; ++j) rows[i * stride + j] = 0;
    }
  });
  return {rows, stride};
}

// Those rows as tiles, the last of them filled up with zeros.
Bf16Rows ToBf16Tiles(ashlar_device& device, const Bf16Rows& rows, int64_t m) {
  const int64_t groups = (m + 15) / 16, group = 16 * rows.stride;
  auto* tiles = device.x_tiles.Get<uint16_t>(groups * group);
  if (tiles == nullptr) return {};
  ForRanges(device, groups, group * 2, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i)
      device.kernels.tile_bf16_rows(tiles + i * group, rows.data + i * group, rows.stride,
                                    m - 16 * i < 16 ? m - 16 * i : 16);
  });
  return {tiles, rows.stride};
}

using FloatKernel = void (*)(const FloatMatmul& args);

struct Inputs {
  QuantRows quant;
  const int32_t* start[ASHLAR_MAX_PARTS] = {};
  FloatKernel bf16_kernel = nullptr;  // null: bf16 weights meet x as it is
  Bf16Rows bf16;
};

// Tiles pay from a whole one on, and change the order of sums.
bool UsesBf16Tiles(const ashlar_device& device, int64_t m) {
  return device.kernels.matmul_bf16_tiles != nullptr && !device.invariant && m >= 16;
}

// False without memory.
bool PrepareBf16(ashlar_device& device, const ashlar_tensor& x, Inputs& in) {
  const int64_t m = x.shape[0];
  const bool tiles = UsesBf16Tiles(device, m);
  in.bf16_kernel = tiles ? device.kernels.matmul_bf16_tiles : device.kernels.matmul_bf16_dot;
  if (in.bf16_kernel == nullptr) return true;
  in.bf16 = ToBf16(device, x);
  if (tiles && in.bf16.data != nullptr) in.bf16 = ToBf16Tiles(device, in.bf16, m);
  return in.bf16.data != nullptr;
}

// Tiles [begin, end) of one part.
void RunTiles(const ashlar_device& device, const WeightPart& part, const Inputs& in,
              const int32_t* start, const ashlar_tensor& out, const ashlar_tensor& x,
              const float* bias, int64_t begin, int64_t end) {
  const KernelTable& kernels = device.kernels;
  float* to = static_cast<float*>(out.data) + part.first_row;
  const float* part_bias = bias == nullptr ? nullptr : bias + part.first_row;
  const int64_t out_stride = out.stride[0] / 4;
  if (part.quant >= 0) {
    kernels.matmul_quant[part.quant]({.tiles = part.tiles,
                                      .tile_bytes = part.tile_bytes,
                                      .codes_offset = part.codes_offset,
                                      .tile_begin = begin,
                                      .tile_end = end,
                                      .rows = part.rows,
                                      .x = in.quant,
                                      .start = start,
                                      .out = to,
                                      .out_stride = out_stride,
                                      .bias = part_bias});
    return;
  }
  FloatMatmul args{.weight = part.source,
                   .weight_stride = part.row_bytes,
                   .row_begin = begin * kTileRows,
                   .row_end = end * kTileRows < part.rows ? end * kTileRows : part.rows,
                   .x = x.data,
                   .x_stride = x.stride[0] / 4,
                   .m = x.shape[0],
                   .k = x.shape[1],
                   .out = to,
                   .out_stride = out_stride,
                   .bias = part_bias};
  if (part.dtype == ASHLAR_BF16 && in.bf16_kernel != nullptr) {
    args.x = in.bf16.data;
    args.x_stride = in.bf16.stride;
    in.bf16_kernel(args);
  } else if (part.dtype == ASHLAR_BF16) {
    kernels.matmul_bf16(args);
  } else if (part.dtype == ASHLAR_F16) {
    kernels.matmul_f16(args);
  } else {
    kernels.matmul_f32(args);
  }
}

int64_t TileBytes(const WeightPart& part) {
  return part.quant >= 0 ? part.tile_bytes : part.row_bytes * kTileRows;
}

// Tiles in one chunk: enough to hide the cost of taking it, few enough that threads end together.
// For few rows of x memory sets the pace, and long runs of it are read fastest.
int64_t TilesPerChunk(const ashlar_device& device, int64_t tiles, int64_t tile_bytes, int64_t m) {
  constexpr int64_t kLeastBytes = 16 * 1024;  // as read once
  int64_t chunk = tiles / (device.pool.threads() * (m > 8 ? 8 : 2));
  const int64_t least = (kLeastBytes + tile_bytes * m - 1) / (tile_bytes * m);
  if (chunk < least) chunk = least;
  if (m > 8) chunk = (chunk + 1) / 2 * 2;  // pairs
  if (m > 8 && chunk > 8) chunk = 8;       // their codes and some rows of x stay in cache
  return chunk < 1 ? 1 : chunk;
}

}  // namespace

int Matmul(ashlar_device& device, const ashlar_tensor& out, const ashlar_tensor& x,
           const ashlar_weight& weight, const ashlar_tensor& bias) {
  std::string wrong = CheckMatrix("matmul x", x, -1, weight.cols);
  if (wrong.empty()) wrong = CheckMatrix("matmul out", out, x.shape[0], weight.rows);
  if (wrong.empty() && bias.data != nullptr) wrong = CheckVector("matmul bias", bias, weight.rows);
  if (!wrong.empty()) return Failed(wrong);
  const int64_t m = x.shape[0];
  if (m == 0) return ASHLAR_OK;

  Inputs in;
  bool quant = false, bf16 = false;
  for (const WeightPart& part : weight.parts) {
    quant |= part.quant >= 0;
    bf16 |= part.dtype == ASHLAR_BF16;
  }
  if (quant && (in.quant = Quantize(device, x)).codes == nullptr)
    return Failed("matmul: no memory for activations");
  for (size_t i = 0; i < weight.parts.size(); ++i) {
    const WeightPart& part = weight.parts[i];
    if (part.offset == 0) continue;  // also every part that is not quantised
    const bool again = i > 0 && part.dtype == weight.parts[i - 1].dtype;
    in.start[i] = again ? in.start[i - 1] : Starts(device.x_start[i], part, in.quant);
    if (in.start[i] == nullptr) return Failed("matmul: no memory for activations");
  }
  if (bf16 && !PrepareBf16(device, x, in)) return Failed("matmul: no memory for activations");

  // Chunks of all parts, numbered through.
  int64_t first_chunk[ASHLAR_MAX_PARTS + 1] = {}, per_chunk[ASHLAR_MAX_PARTS];
  const int parts = static_cast<int>(weight.parts.size());
  for (int i = 0; i < parts; ++i) {
    const WeightPart& part = weight.parts[i];
    per_chunk[i] = TilesPerChunk(device, part.tile_count(), TileBytes(part), m);
    first_chunk[i + 1] = first_chunk[i] + (part.tile_count() + per_chunk[i] - 1) / per_chunk[i];
  }
  const auto* bias_data = static_cast<const float*>(bias.data);
  device.pool.Run(first_chunk[parts], [&](int64_t chunk, int) {
    int i = 0;
    while (chunk >= first_chunk[i + 1]) ++i;
    const WeightPart& part = weight.parts[i];
    const int64_t begin = (chunk - first_chunk[i]) * per_chunk[i];
    const int64_t end = begin + per_chunk[i];
    RunTiles(device, part, in, in.start[i], out, x, bias_data, begin,
             end < part.tile_count() ? end : part.tile_count());
  });
  return ASHLAR_OK;
}

}  // namespace ashlar::cpu
