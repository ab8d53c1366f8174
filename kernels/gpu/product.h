// One part of a weight times x, for any number of tokens: by the vendor's library where there is
// one, after x is brought to the weight's type, else by own kernels.
#pragma once

#include "device.h"
#include "matmul_kernel.h"
#include "quantize_x.h"

namespace ashlar::gpu_kernels {

// Whether rows of `type` that lie so may be read 16 bytes at a time, and end where k does.
bool IsPadded(const void* data, int64_t row_bytes, int64_t cols, int64_t pitch);
// x as `type`, rows padded with zeros to `pitch`, which `to` has room for.
gpu::Error LaunchConvert(gpu::Stream stream, const MatmulParams& p, ashlar_dtype type, void* to);

// out = residual + (x * weight^T + bias). `type` is the weight's; `room` holds tokens * pitch
// elements of 16 bits.
int LaunchProduct(ashlar_device* device, gpu::Stream stream, const MatmulParams& p,
                  ashlar_dtype type, void* room);

// The product of a float8 weight with x normed on its way to float8, which only a library takes.
// False where it is not carried out: out is as it was.
bool LaunchNormedF8(ashlar_device* device, gpu::Stream stream, const MatmulParams& p,
                    const XNorm& norm, void* room);

}  // namespace ashlar::gpu_kernels
