// Products with up to 16 tokens, where a step of decoding spends its time: norm ahead, then bias,
// residual or gate, in one launch. Bound by the weight's bytes.
#pragma once

#include "ashlar_plugin.h"
#include "gpu.h"

namespace ashlar::gpu_kernels {

inline constexpr int kMostSkinnyTokens = 16;

// out = residual + (norm(x) * weight^T + bias), or act(norm(x) * gate^T) * (norm(x) * up^T).
struct SkinnyParams {
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

// Whether a block of this device has room for what the kernel keeps.
bool FitsSkinny(const gpu::Facts& facts, const SkinnyParams& params);
gpu::Error LaunchSkinny(const gpu::Facts& facts, gpu::Stream stream, const SkinnyParams& params);

}  // namespace ashlar::gpu_kernels
