#include "hopper_matmul_kernel.h"

namespace ashlar::hopper {

gpu::Error LaunchMatmulF8(const MatmulLaunch& launch, const MatmulParams& params) {
  return LaunchMatmul<gpu_kernels::F8>(launch, params);
}

}  // namespace ashlar::hopper
