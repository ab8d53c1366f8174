// Rows of a matrix as float8 with a scale each.
#pragma once

#include <cstdint>

#include "ashlar_plugin.h"
#include "gpu.h"

namespace ashlar::gpu_kernels {

struct F8Rows {
  const void* from;  // dense rows of `cols`: float32, float16 or bfloat16
  ashlar_dtype dtype;
  int64_t cols, pitch;  // of `to`: a whole multiple of 8
  void* to;             // rows of `pitch`, padded with zeros
  float* scales;  // what a row is to be multiplied by: NaN when one of its values is not finite
};

gpu::Error LaunchToF8(int wave, gpu::Stream stream, int64_t rows, const F8Rows& p);

}  // namespace ashlar::gpu_kernels
