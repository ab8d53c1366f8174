#include "weight.h"

#include <string.h>

#include <memory>

#include "common/shapes.h"

namespace ashlar::cpu {
namespace {

bool IsFloat(ashlar_dtype dtype) {
  return dtype == ASHLAR_F32 || dtype == ASHLAR_F16 || dtype == ASHLAR_BF16;
}

struct TileShape {
  int64_t codes_offset, bytes;
};
TileShape ShapeOf(const QuantFormat& f, int64_t cols) {
  const int64_t blocks = cols / kBlockColumns;
  const int64_t scales = (blocks / f.group_blocks * f.group_scale_bytes() + 63) / 64 * 64;
  return {scales, scales + blocks * f.block_code_bytes()};
}

int64_t Tiles(int64_t rows) { return (rows + kTileRows - 1) / kTileRows; }

}  // namespace

std::string CheckDesc(const ashlar_weight_desc& desc) {
  constexpr int64_t kMost = int64_t{1} << 31;
  if (desc.parts < 1 || desc.parts > ASHLAR_MAX_PARTS)
    return "a weight of " + std::to_string(desc.parts) + " parts; 1 to " +
           std::to_string(ASHLAR_MAX_PARTS) + " are possible";
  if (desc.cols < 1 || desc.cols > kMost)
    return "a weight of " + std::to_string(desc.cols) + " columns";
  if (desc.fp8 != 0) return "fp8 weights are not supported";
  for (int i = 0; i < desc.parts; ++i) {
    if (desc.rows[i] < 1 || desc.rows[i] > kMost)
      return "a weight part of " + std::to_string(desc.rows[i]) + " rows";
    const int quant = QuantIndex(desc.dtype[i]);
    if (quant < 0 && !IsFloat(desc.dtype[i]))
      return "weights of dtype " + std::to_string(desc.dtype[i]) + " are not supported";
    if (quant >= 0 && desc.cols % kQuantFormats[quant].source_columns != 0)
      return std::to_string(desc.cols) + " columns are no multiple of the block of " +
             std::to_string(kQuantFormats[quant].source_columns);
  }
  return "";
}

int64_t PackedBytes(const ashlar_weight_desc& desc) {
  int64_t bytes = 0;
  for (int i = 0; i < desc.parts; ++i)
    if (const int quant = QuantIndex(desc.dtype[i]); quant >= 0)
      bytes += Tiles(desc.rows[i]) * ShapeOf(kQuantFormats[quant], desc.cols).bytes;
  return bytes;
}

int CreateWeight(ashlar_device& device, const ashlar_weight_desc& desc, const void* const* sources,
                 ashlar_weight** out) {
  if (const std::string wrong = CheckDesc(desc); !wrong.empty())
    return Failed("weight_create: " + wrong);
  auto weight = std::make_unique<ashlar_weight>();
  weight->cols = desc.cols;
  const int64_t bytes = PackedBytes(desc);
  if (bytes > 0) weight->packed = device.weights.Take(bytes);
  if (bytes > 0 && weight->packed.data == nullptr)
    return Failed("weight_create: no memory for " + std::to_string(bytes) + " bytes");
  uint8_t* next = static_cast<uint8_t*>(weight->packed.data);
  for (int i = 0; i < desc.parts; ++i) {
    WeightPart part;
    part.dtype = desc.dtype[i];
    part.quant = QuantIndex(part.dtype);
    part.rows = desc.rows[i];
    part.first_row = weight->rows;
    weight->rows += part.rows;
    if (part.quant < 0) {
      part.source = static_cast<const char*>(sources[i]);
      part.row_bytes = desc.cols * FloatBytes(part.dtype);
    } else {
      const QuantFormat& f = kQuantFormats[part.quant];
      const TileShape shape = ShapeOf(f, desc.cols);
      part.tiles = next;
      part.tile_bytes = shape.bytes;
      part.codes_offset = shape.codes_offset;
      part.offset = part.dtype == ASHLAR_Q8_0 ? device.kernels.q8_offset : f.offset;
      next += part.tile_count() * shape.bytes;
      const auto* source = static_cast<const uint8_t*>(sources[i]);
      ForRanges(device, part.tile_count(), shape.bytes, [&](int64_t begin, int64_t end, int) {
        PackTiles(part, desc.cols, source, begin, end);
      });
    }
    weight->parts.push_back(part);
  }
  *out = weight.release();
  return ASHLAR_OK;
}

int Embed(ashlar_device& device, const ashlar_tensor& out, const ashlar_weight& weight,
          const int32_t* ids, float scale) {
  const int64_t n = out.shape[0];
  for (int64_t i = 0; i < n; ++i)
    if (ids[i] < 0 || ids[i] >= weight.rows)
      return Failed("embed: id " + std::to_string(ids[i]) + " of " + std::to_string(weight.rows) +
                    " rows");
  ForRanges(device, n, weight.cols * 8, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const WeightPart* part = &weight.parts[0];
      for (const WeightPart& p : weight.parts)
        if (ids[i] >= p.first_row) part = &p;
      const int64_t row = ids[i] - part->first_row;
      float* to = reinterpret_cast<float*>(static_cast<char*>(out.data) + i * out.stride[0]);
      if (part->quant >= 0)
        UnpackRow(*part, weight.cols, row, to);
      else
        device.kernels.to_floats(to, part->source + row * part->row_bytes, part->dtype,
                                 weight.cols);
      if (scale != 1.0f) device.kernels.scale_row(to, to, scale, weight.cols);
    }
  });
  return ASHLAR_OK;
}

}  // namespace ashlar::cpu
