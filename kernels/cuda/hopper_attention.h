// Causal attention over the paged cache with wgmma. Bound by flops.
//
// A block is one producer warp and consumer warpgroups of 64 rows each. Blocks stay and take tile
// after tile, so that the copies of the next tile run during the end of the last.
#pragma once

#include "hopper_consumer.h"
#include "hopper_launch.h"
#include "hopper_producer.h"

namespace ashlar::hopper {

template <class T, int kHeadDim>
__global__ void __launch_bounds__(AttentionShape<kHeadDim>::kThreads, 1)
    AttentionKernel(const __grid_constant__ CUtensorMap q_map,
                    const __grid_constant__ CUtensorMap kv_map,
                    const __grid_constant__ AttentionParams params) {
#if defined(ASHLAR_HOPPER)
  using Shape = AttentionShape<kHeadDim>;
  const auto place = reinterpret_cast<uintptr_t>(gpu::SharedMemory());
  static_assert(sizeof(SharedTiles<kHeadDim>) + 1024 <= Shape::kSharedBytes);
  auto& shared = *reinterpret_cast<SharedTiles<kHeadDim>*>((place + 1023) / 1024 * 1024);
  gpu::ReleaseNext();
  if (gpu::ThreadX() == 0) {
    PrefetchMap(&q_map);
    PrefetchMap(&kv_map);
    shared.Init();
  }
  gpu::WaitForPrevious();
  gpu::SyncBlock();
  if (gpu::ThreadX() < 128) {
    GiveRegisters<Shape::kProducerRegisters>();
    if (gpu::ThreadX() < 32) Producer<kHeadDim>(shared, &q_map, &kv_map, params).Run();
  } else {
    TakeRegisters<Shape::kConsumerRegisters>();
    Consumer<T, kHeadDim>(shared, params).Run();
  }
#endif
}

template <class T, int kHeadDim>
gpu::Error LaunchHeadDim(const AttentionLaunch& launch, const AttentionParams& params) {
  using Shape = AttentionShape<kHeadDim>;
  return gpu::Launch(launch.stream, {launch.blocks}, Shape::kThreads, Shape::kSharedBytes,
                     AttentionKernel<T, kHeadDim>, launch.q_map, launch.kv_map, params);
}

template <class T>
gpu::Error Launch(const AttentionLaunch& launch, const AttentionParams& params) {
  switch (launch.head_dim) {
    case 64:
      return LaunchHeadDim<T, 64>(launch, params);
    case 128:
      return LaunchHeadDim<T, 128>(launch, params);
    default:
      return LaunchHeadDim<T, 256>(launch, params);
  }
}

}  // namespace ashlar::hopper
