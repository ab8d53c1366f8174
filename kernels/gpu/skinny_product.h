// Products with up to 16 tokens, where a step of decoding spends its time: norm ahead, then bias,
// residual or gate, in one launch. Bound by the weight's bytes.
#pragma once

#include "fused_product.h"
#include "gpu.h"

namespace ashlar::gpu_kernels {

inline constexpr int kMostSkinnyTokens = 16;

// Whether a block of this device has room for what the kernel keeps.
bool FitsSkinny(const gpu::Facts& facts, const FusedProductParams& params);
gpu::Error LaunchSkinny(const gpu::Facts& facts, gpu::Stream stream,
                        const FusedProductParams& params);

}  // namespace ashlar::gpu_kernels
