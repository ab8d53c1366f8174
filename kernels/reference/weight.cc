#include "weight.h"

#include <new>

#include "dequantize.h"
#include "device.h"

using ashlar::reference::BlockShape;
using ashlar::reference::Dequantize;
using ashlar::reference::WeightBlock;

void ashlar_weight::ReadRow(int64_t row, float* out) const {
  int part = 0;
  while (row >= desc.rows[part]) row -= desc.rows[part++];
  const BlockShape block = WeightBlock(desc.dtype[part]);
  const int64_t row_bytes = desc.cols / block.elements * block.bytes;
  Dequantize(desc.dtype[part], static_cast<const char*>(sources[part]) + row * row_bytes, desc.cols,
             out);
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
