// Two blocks that run side by side and bring the same tile together, each a half of it to both.
#pragma once

#include "hopper.h"

namespace ashlar::hopper {

// As gpu::Launch, in clusters of `blocks` neighbouring blocks.
template <class... Params, class... Args>
gpu::Error LaunchClusters(gpu::Stream stream, unsigned blocks, gpu::Grid grid, unsigned threads,
                          size_t shared_bytes, void (*kernel)(Params...), Args... args) {
  const gpu::Error error = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                                cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                static_cast<int>(shared_bytes));
  if (error != gpu::kSuccess) return error;
  cudaLaunchAttribute attributes[2]{};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim.x = blocks;
  attributes[1].val.clusterDim.y = attributes[1].val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(grid.x, grid.y, grid.z);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = 2;
  return cudaLaunchKernelEx(&config, kernel, static_cast<Params>(args)...);
}

#if defined(ASHLAR_HOPPER)

GPU_DEVICE int ClusterRank() {
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
// Of all threads of the cluster's blocks.
GPU_DEVICE void SyncCluster() {
  asm volatile(
      "barrier.cluster.arrive.release;\n"
      "barrier.cluster.wait.acquire;" ::
          : "memory");
}
// At the barrier that lies there in the block of this rank.
GPU_DEVICE void ArriveAt(Barrier* barrier, int rank) {
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n"
      "}" ::"r"(gpu::SharedAddress(barrier)),
      "r"(rank)
      : "memory");
}
// A box into the same place of the blocks whose bits are set; it counts on the barrier of each.
GPU_DEVICE void CopyBoxTo(void* to, const CUtensorMap* map, Barrier* barrier, unsigned blocks,
                          int c0, int c1) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%4, %5}], [%2], %3;" ::"r"(gpu::SharedAddress(to)),
      "l"(map), "r"(gpu::SharedAddress(barrier)), "h"(static_cast<uint16_t>(blocks)), "r"(c0),
      "r"(c1)
      : "memory");
}

#endif

}  // namespace ashlar::hopper
