#include "attention_launch.h"

namespace ashlar::gpu_kernels {

gpu::Error LaunchAttentionF8(const AttentionLaunch& launch, gpu::Stream stream,
                             const AttentionParams& params) {
  return LaunchAttention<F8>(launch, stream, params);
}

}  // namespace ashlar::gpu_kernels
