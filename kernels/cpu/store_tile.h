// Where the results of a matmul go.
#pragma once

#include "quant_format.h"
#include "simd.h"

namespace ashlar::cpu::ASHLAR_CPU_LEVEL {

// One tile's results of one row of x, with bias (null: none), to `left` or at most 16 places.
ASHLAR_INLINE void StoreTile(float* out, const float* bias, int64_t left, F32x16 value) {
  if (left >= kTileRows) {
    Store(out, bias ? Add(value, Load(bias)) : value);
  } else {
    StoreFirst(out, bias ? Add(value, LoadFirst(bias, left)) : value, left);
  }
}

}  // namespace ashlar::cpu::ASHLAR_CPU_LEVEL
