#include "hopper_attention.h"

namespace ashlar::hopper {

gpu::Error LaunchF16(const AttentionLaunch& launch, const AttentionParams& params) {
  return Launch<gpu_kernels::F16>(launch, params);
}

}  // namespace ashlar::hopper
