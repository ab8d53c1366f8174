// One decode, one prefill and one matmul instance, for a look at what the compilers make of them.
#include "gpu/attention_kernel.h"
#include "gpu/matmul_kernel.h"

namespace ashlar::gpu_kernels {

template GPU_KERNEL void AttentionKernel<BF16, 128, ASHLAR_WAVE, true>(const AttentionParams);
template GPU_KERNEL void AttentionKernel<BF16, 128, ASHLAR_WAVE, false>(const AttentionParams);
template GPU_KERNEL void MatmulKernel<BF16, ASHLAR_WAVE, 1>(const MatmulParams);

}  // namespace ashlar::gpu_kernels
