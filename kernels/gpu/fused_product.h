// A product with what stands ahead of it and behind it, in one kernel: the portable one
// (skinny_product.h) or an architecture's own (FusedProducts).
#pragma once

#include <cstdint>

#include "ashlar_plugin.h"

namespace ashlar::gpu_kernels {

// out = residual + (norm(x) * weight^T + bias), or act(norm(x) * gate^T) * (norm(x) * up^T).
struct FusedProductParams {
  ashlar_dtype type;       // of the weight: float16, bfloat16 or float8
  const void* weight[2];   // [rows, cols] alone; with `gated` the gates and the ups
  const float* scales[2];  // [rows] of float8 weights
  int64_t pitch;           // elements between rows, of whole 64 bytes; zeros beyond cols
  int rows, cols;          // cols a multiple of 8
  const void* x;           // of the weight's type, bfloat16 with float8; rows 16-byte aligned
  int64_t x_row_bytes;
  const float* x_scales;  // [tokens], of float8 x, which only FusedProducts take; else NULL
  int tokens;
  const float* norm;  // 16-byte aligned, or NULL; not with float16, which x * norm could leave
  float eps;
  const float* bias;     // or NULL
  const void* residual;  // of out's type, or NULL
  int64_t residual_row_bytes;
  void* out;
  ashlar_dtype out_dtype;
  int64_t out_row_bytes;
  int gated;
  ashlar_activation activation;
};

}  // namespace ashlar::gpu_kernels
