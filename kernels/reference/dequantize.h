// GGUF's storage of weights as float32, bit for bit the values that the format defines.
#pragma once

#include <cstdint>

#include "ashlar_plugin.h"

namespace ashlar::reference {

// Storage of one block of a weight dtype; elements 0: no weight dtype.
struct BlockShape {
  int64_t elements, bytes;
};
BlockShape WeightBlock(ashlar_dtype dtype);

// `count` values, a multiple of the block's elements, from `source`, which may be unaligned.
void Dequantize(ashlar_dtype dtype, const void* source, int64_t count, float* out);

}  // namespace ashlar::reference
