#include "hopper_matmul_kernel.h"

namespace ashlar::hopper {

gpu::Error LaunchMatmulF16(const MatmulLaunch& launch, const MatmulParams& params) {
  return LaunchMatmul<gpu_kernels::F16>(launch, params);
}

}  // namespace ashlar::hopper
