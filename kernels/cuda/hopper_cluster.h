// Blocks that run side by side and put results into each other's shared memory.
#pragma once

#include "hopper_barrier.h"

namespace ashlar::hopper {

#if defined(ASHLAR_GPU_HOST)

// As gpu::Launch, in clusters of `blocks` neighbouring blocks, up to 8; `together` where all blocks
// of the grid wait for each other.
template <class... Params, class... Args>
gpu::Error LaunchClusters(gpu::Stream, unsigned blocks, gpu::Grid grid, unsigned threads,
                          size_t shared_bytes, bool together, void (*kernel)(Params...),
                          Args... args) {
  const auto run = [&] { kernel(static_cast<Params>(args)...); };
  gpu::RunGrid(grid, threads, shared_bytes, run, blocks, together);
  return gpu::kSuccess;
}

// Clusters that run side by side on the device of this thread.
template <class Kernel>
int CountClusters(unsigned blocks, unsigned, size_t, Kernel) {
  gpu::Facts facts;
  return gpu::ReadFacts(0, &facts) == gpu::kSuccess ? facts.multiprocessors / int(blocks) : 0;
}

#else

struct ClusterLaunch {
  cudaLaunchAttribute attributes[2]{};
  cudaLaunchConfig_t config{};

  ClusterLaunch(gpu::Stream stream, unsigned blocks, gpu::Grid grid, unsigned threads,
                size_t shared_bytes) {
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim.x = blocks;
    attributes[0].val.clusterDim.y = attributes[0].val.clusterDim.z = 1;
    attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[1].val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = dim3(grid.x, grid.y, grid.z);
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = 2;
  }
};

template <class... Params, class... Args>
gpu::Error LaunchClusters(gpu::Stream stream, unsigned blocks, gpu::Grid grid, unsigned threads,
                          size_t shared_bytes, bool, void (*kernel)(Params...), Args... args) {
  const gpu::Error error = gpu::AskForShared(reinterpret_cast<const void*>(kernel), shared_bytes);
  if (error != gpu::kSuccess) return error;
  const ClusterLaunch launch(stream, blocks, grid, threads, shared_bytes);
  return cudaLaunchKernelEx(&launch.config, kernel, static_cast<Params>(args)...);
}

template <class Kernel>
int CountClusters(unsigned blocks, unsigned threads, size_t shared_bytes, Kernel kernel) {
  const auto* const function = reinterpret_cast<const void*>(kernel);
  if (gpu::AskForShared(function, shared_bytes) != gpu::kSuccess) return 0;
  ClusterLaunch launch(nullptr, blocks, {blocks}, threads, shared_bytes);
  launch.config.numAttrs = 1;  // what is asked is a matter of clusters alone
  int clusters = 0;
  const gpu::Error error = cudaOccupancyMaxActiveClusters(&clusters, function, &launch.config);
  return error == gpu::kSuccess ? clusters : 0;
}

#endif

#if defined(ASHLAR_GPU_HOST)

inline int ClusterRank() { return gpu::CurrentThread().rank; }
inline void ArriveCluster() { gpu::ArriveCluster(); }
inline void AwaitCluster() { gpu::AwaitCluster(); }
inline void StoreAt(float* place, Barrier* barrier, int rank, float first, float second) {
  const float values[2] = {first, second};
  gpu::StoreLater(place, barrier, rank, values, sizeof values);
}
inline void StoreAt(float* place, Barrier* barrier, int rank, const gpu::Four& values) {
  gpu::StoreLater(place, barrier, rank, &values, sizeof values);
}

#elif defined(ASHLAR_HOPPER)

GPU_DEVICE int ClusterRank() {
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
// A barrier of all threads of the cluster's blocks, in two halves; after it each block sees the
// barriers of others that FenceBarriers has shown.
GPU_DEVICE void ArriveCluster() { asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory"); }
GPU_DEVICE void AwaitCluster() { asm volatile("barrier.cluster.wait;" ::: "memory"); }

// Into the same place of the block of this rank; the bytes count on the barrier that lies there.
GPU_DEVICE void StoreAt(float* place, Barrier* barrier, int rank, float first, float second) {
  asm volatile(
      "{\n"
      ".reg .b32 there, counter;\n"
      "mapa.shared::cluster.u32 there, %0, %2;\n"
      "mapa.shared::cluster.u32 counter, %1, %2;\n"
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [there], {%3, %4}, "
      "[counter];\n"
      "}" ::"r"(gpu::SharedAddress(place)),
      "r"(gpu::SharedAddress(barrier)), "r"(rank), "f"(first), "f"(second)
      : "memory");
}
GPU_DEVICE void StoreAt(float* place, Barrier* barrier, int rank, const gpu::Four& values) {
  asm volatile(
      "{\n"
      ".reg .b32 there, counter;\n"
      "mapa.shared::cluster.u32 there, %0, %2;\n"
      "mapa.shared::cluster.u32 counter, %1, %2;\n"
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [there], "
      "{%3, %4, %5, %6}, [counter];\n"
      "}" ::"r"(gpu::SharedAddress(place)),
      "r"(gpu::SharedAddress(barrier)), "r"(rank), "f"(values.value[0]), "f"(values.value[1]),
      "f"(values.value[2]), "f"(values.value[3])
      : "memory");
}

#endif

}  // namespace ashlar::hopper
