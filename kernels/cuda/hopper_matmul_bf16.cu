#include "hopper_matmul_kernel.h"

namespace ashlar::hopper {

gpu::Error LaunchMatmulBF16(const MatmulLaunch& launch, const MatmulParams& params) {
  return LaunchMatmul<gpu_kernels::BF16>(launch, params);
}

}  // namespace ashlar::hopper
