// A weight here is its description and the caller's own bytes, read in place.
#pragma once

#include <cstdint>

#include "ashlar_plugin.h"

struct ashlar_weight {
  ashlar_weight_desc desc;
  const void* sources[ASHLAR_MAX_PARTS];
  int64_t rows;  // of all parts

  // Row `row` of the stack as cols floats; 0 <= row < rows.
  void ReadRow(int64_t row, float* out) const;
};

namespace ashlar::reference {

int64_t WeightBytes(const ashlar_weight_desc* desc);
int WeightCreate(ashlar_device* device, const ashlar_weight_desc* desc, const void* const* sources,
                 ashlar_weight** out);
void WeightDestroy(ashlar_device* device, ashlar_weight* weight);

}  // namespace ashlar::reference
