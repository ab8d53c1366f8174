#include "gpu/platform.h"

#include "ashlar_rows.h"

namespace ashlar::gpu_kernels {

const Platform& ThisPlatform() {
  static const Platform platform{"cuda",
                                 "CUDA_PAGED",
                                 "CUDA_HOPPER",
                                 "CUDA_CUDNN",
                                 ashlar_cuda_rows,
                                 ashlar_cuda_row_count,
                                 "/proc/driver/nvidia/version",
                                 "/dev/nvidiactl"};
  return platform;
}

}  // namespace ashlar::gpu_kernels
