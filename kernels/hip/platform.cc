#include "gpu/platform.h"

#include "ashlar_rows.h"

namespace ashlar::gpu_kernels {

const Platform& ThisPlatform() {
  static const Platform platform{
      "hip",     "HIP_PAGED", "", "", ashlar_hip_rows, ashlar_hip_row_count, "/sys/module/amdgpu",
      "/dev/kfd"};
  return platform;
}

}  // namespace ashlar::gpu_kernels
