// The kernels of hopper_layers_launch.h for weights of one type and clusters of one size.
#pragma once

#include "hopper_layers.h"
#include "hopper_layers_launch.h"

namespace ashlar::hopper {

template <class W, class Stored, int kHeadDim, int kRanks>
struct LayersInstance {
  static constexpr int kAttention = kAttentionBytes<Stored, kHeadDim, kRanks>;

  static ProductsLayout LayOut(const LayersLaunch& launch, const gpu_kernels::LayersParams& p) {
    return LayOutProducts(p, static_cast<int>(launch.clusters) * kRanks,
                          launch.shared_bytes - kAttention);
  }
  static gpu::Error Launch(const LayersLaunch& launch, gpu::Stream stream,
                           const gpu_kernels::LayersParams& p) {
    const ProductsLayout layout = LayOut(launch, p);
    return LaunchClusters(stream, kRanks, {launch.clusters * kRanks}, kProductThreads,
                          static_cast<size_t>(kAttention + layout.all), true,
                          LayersKernel<W, Stored, kHeadDim, kRanks>, p, layout);
  }
};

// Calls body(the instance for such a launch).
template <class W, int kRanks, class Body>
auto WithLayersInstance(const gpu_kernels::LayersParams& p, Body body) {
  using namespace gpu_kernels;
  const bool f8 = p.prepare.kv.dtype == ASHLAR_F8_E4M3;
  if (p.prepare.kv.head_dim == 128) {
    return f8 ? body(LayersInstance<W, F8, 128, kRanks>{})
              : body(LayersInstance<W, BF16, 128, kRanks>{});
  }
  return f8 ? body(LayersInstance<W, F8, 64, kRanks>{})
            : body(LayersInstance<W, BF16, 64, kRanks>{});
}

template <class W, int kRanks>
int LayersOf<W, kRanks>::CountClusters(int64_t shared_bytes) {
  return hopper::CountClusters(kRanks, kProductThreads, static_cast<size_t>(shared_bytes),
                               LayersKernel<W, gpu_kernels::BF16, 128, kRanks>);
}

template <class W, int kRanks>
bool LayersOf<W, kRanks>::Fits(const LayersLaunch& launch, const gpu_kernels::LayersParams& p) {
  return WithLayersInstance<W, kRanks>(
      p, [&](auto instance) { return instance.LayOut(launch, p).stages > 0; });
}

template <class W, int kRanks>
gpu::Error LayersOf<W, kRanks>::Launch(const LayersLaunch& launch, gpu::Stream stream,
                                       const gpu_kernels::LayersParams& p) {
  return WithLayersInstance<W, kRanks>(
      p, [&](auto instance) { return instance.Launch(launch, stream, p); });
}

}  // namespace ashlar::hopper
