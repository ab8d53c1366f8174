#include "hopper_attention.h"

namespace ashlar::hopper {

bool RunsOn(int device) {
  int major = 0;
  cudaFuncAttributes kernel{};
  return cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
         major == 9 &&
         cudaFuncGetAttributes(&kernel, AttentionKernel<gpu_kernels::BF16, 128>) == cudaSuccess &&
         kernel.binaryVersion == 90;
}

gpu::Error LaunchBF16(const AttentionLaunch& launch, const AttentionParams& params) {
  return Launch<gpu_kernels::BF16>(launch, params);
}

}  // namespace ashlar::hopper
