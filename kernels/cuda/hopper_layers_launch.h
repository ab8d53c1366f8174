// Launches of LayersKernel, for weights of BF16 or F8, in clusters of 8 blocks or of 4.
#pragma once

#include "gpu/layers.h"

namespace ashlar::hopper {

struct LayersLaunch {
  unsigned clusters;     // all that run side by side
  int64_t shared_bytes;  // of a block
};

template <class W, int kRanks>
struct LayersOf {
  static int CountClusters(int64_t shared_bytes);
  // Whether a block has room; the rest is for the caller to ask.
  static bool Fits(const LayersLaunch& launch, const gpu_kernels::LayersParams& p);
  static gpu::Error Launch(const LayersLaunch& launch, gpu::Stream stream,
                           const gpu_kernels::LayersParams& p);
};

}  // namespace ashlar::hopper
