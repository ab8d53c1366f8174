// Two instances of decode, one of prefill, one matmul and two of skinny, for a look at what the
// compilers make of them.
#include "gpu/attention_launch.h"
#include "gpu/matmul_kernel.h"
#include "gpu/skinny_kernel.h"

namespace ashlar::gpu_kernels {

template GPU_KERNEL void DecodeKernel<BF16, 128, ASHLAR_WAVE>(const AttentionParams);
template GPU_KERNEL void DecodeKernel<F8, 128, ASHLAR_WAVE, true>(const AttentionParams);
template GPU_KERNEL void TileKernel<BF16, 128, ASHLAR_WAVE>(const AttentionParams);
template GPU_KERNEL void MatmulKernel<BF16, ASHLAR_WAVE, 1>(const MatmulParams);
template GPU_KERNEL void SkinnyKernel<BF16, ASHLAR_WAVE, 1, 0>(const FusedProductParams,
                                                               const SkinnyLayout);
template GPU_KERNEL void SkinnyKernel<BF16, ASHLAR_WAVE, 1, 4>(const FusedProductParams,
                                                               const SkinnyLayout);

}  // namespace ashlar::gpu_kernels
