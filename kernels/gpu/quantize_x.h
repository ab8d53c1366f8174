// x as float8, with a scale a token.
#pragma once

#include "matmul_kernel.h"

namespace ashlar::gpu_kernels {

// An RMS norm of x.
struct XNorm {
  const float* weight = nullptr;  // [cols]; NULL: x as it is
  float eps = 0;
};

// x, normed or not, as float8 in rows of p.pitch, then what each row is multiplied by: `to` has
// room for 16-bit values in such rows.
gpu::Error LaunchQuantize(int wave, gpu::Stream stream, const MatmulParams& p, const XNorm& norm,
                          void* to);
// The scales behind those rows.
const float* F8Scales(const MatmulParams& p, const void* quantized);

}  // namespace ashlar::gpu_kernels
