#include "weight.h"

#include <algorithm>
#include <cmath>
#include <new>

#include "dequantize.h"
#include "device.h"

using ashlar::reference::BlockShape;
using ashlar::reference::Dequantize;
using ashlar::reference::WeightBlock;

namespace {

// The nearest value of F8_E4M3, ties to even: 3 bits of fraction, exponents from -6 on.
float NearestF8(float value) {
  const float magnitude = std::fabs(value);
  const int exponent = magnitude > 0 ? std::max(std::ilogb(magnitude), -6) : -6;
  const float step = std::ldexp(1.0f, exponent - 3);
  return std::copysign(std::min(std::nearbyint(magnitude / step) * step, 448.0f), value);
}

void RoundRowToF8(int64_t cols, float* row) {
  float largest = 0;
  for (int64_t i = 0; i < cols; ++i) largest = std::max(largest, std::fabs(row[i]));
  if (largest == 0) return;
  const float scale = largest / 448.0f, inverse = 448.0f / largest;
  for (int64_t i = 0; i < cols; ++i) row[i] = NearestF8(row[i] * inverse) * scale;
}

}  // namespace

void ashlar_weight::ReadRow(int64_t row, float* out) const {
  int part = 0;
  while (row >= desc.rows[part]) row -= desc.rows[part++];
  const BlockShape block = WeightBlock(desc.dtype[part]);
  const int64_t row_bytes = desc.cols / block.elements * block.bytes;
  Dequantize(desc.dtype[part], static_cast<const char*>(sources[part]) + row * row_bytes, desc.cols,
             out);
  if (desc.fp8 != 0) RoundRowToF8(desc.cols, out);
}

namespace ashlar::reference {
namespace {

const char* Refusal(const ashlar_weight_desc& desc) {
  if (desc.parts < 1 || desc.parts > ASHLAR_MAX_PARTS) return "a weight has 1 to 4 parts";
  if (desc.cols < 1) return "a weight needs at least one column";
  for (int32_t i = 0; i < desc.parts; ++i) {
    const BlockShape block = WeightBlock(desc.dtype[i]);
    if (block.elements == 0) return "no weight has this dtype";
    if (desc.cols % block.elements != 0) return "columns are no multiple of the dtype's block";
    if (desc.rows[i] < 1) return "a part of a weight needs at least one row";
    if (desc.fp8 != 0 && block.elements > 1) return "fp8 weights are made of float parts";
  }
  return nullptr;
}

}  // namespace

int64_t WeightBytes(const ashlar_weight_desc*) { return 0; }

int WeightCreate(ashlar_device*, const ashlar_weight_desc* desc, const void* const* sources,
                 ashlar_weight** out) {
  if (const char* refusal = Refusal(*desc)) return Failed(refusal);
  auto* weight = new (std::nothrow) ashlar_weight{*desc, {}, 0};
  if (weight == nullptr) return Failed("out of memory");
  for (int32_t i = 0; i < desc->parts; ++i) {
    weight->sources[i] = sources[i];
    weight->rows += desc->rows[i];
  }
  *out = weight;
  return ASHLAR_OK;
}

void WeightDestroy(ashlar_device*, ashlar_weight* weight) { delete weight; }

}  // namespace ashlar::reference
