// Launches of AttentionKernel for one element type of the cache.
#pragma once

#include "attention_combine.h"
#include "attention_kernel.h"

namespace ashlar::gpu_kernels {

inline constexpr int kAttentionHeadSizes[] = {32, 64, 80, 96, 128, 256};

// Which kernels a step needs.
struct AttentionLaunch {
  int wave = 0;
  bool tiles = false;   // whole tiles of rows
  bool splits = false;  // keys divided, then added up
};

// kSuccess, or the first launch that failed. The head size is one of kAttentionHeadSizes.
gpu::Error LaunchAttentionBF16(const AttentionLaunch& launch, gpu::Stream stream,
                               const AttentionParams& params);
gpu::Error LaunchAttentionF16(const AttentionLaunch& launch, gpu::Stream stream,
                              const AttentionParams& params);

template <class T, int kHeadDim, int kWave>
gpu::Error LaunchHeadDim(const AttentionLaunch& launch, gpu::Stream stream,
                         const AttentionParams& p) {
  const auto kv_heads = static_cast<unsigned>(p.args.kv.kv_heads);
  const auto sequences = static_cast<unsigned>(p.args.sequences);
  if (launch.tiles) {
    using Shape = AttentionShape<kHeadDim, false>;
    const int64_t tiles = p.args.q.shape[0] * p.group / Shape::kRows + sequences;
    const gpu::Error error =
        gpu::Launch(stream, {static_cast<unsigned>(tiles), kv_heads}, Shape::kWaves * kWave,
                    Shape::kSharedBytes, AttentionKernel<T, kHeadDim, kWave, false>, p);
    if (error != gpu::kSuccess) return error;
  }
  if (!launch.splits) return gpu::kSuccess;
  using Shape = AttentionShape<kHeadDim, true>;
  const gpu::Error error = gpu::Launch(
      stream, {static_cast<unsigned>(p.splits), kv_heads, sequences}, Shape::kWaves * kWave,
      Shape::kSharedBytes, AttentionKernel<T, kHeadDim, kWave, true>, p);
  if (error != gpu::kSuccess || p.parts == nullptr) return error;
  return gpu::Launch(stream, {kTile, kv_heads, sequences}, kHeadDim, 0, CombineKernel<kHeadDim>, p);
}

template <class T>
gpu::Error LaunchAttention(const AttentionLaunch& launch, gpu::Stream stream,
                           const AttentionParams& p) {
  return gpu::WithWave(launch.wave, [&](auto wave) {
    constexpr int kWave = wave;
    switch (p.args.kv.head_dim) {
      case 32:
        return LaunchHeadDim<T, 32, kWave>(launch, stream, p);
      case 64:
        return LaunchHeadDim<T, 64, kWave>(launch, stream, p);
      case 80:
        return LaunchHeadDim<T, 80, kWave>(launch, stream, p);
      case 96:
        return LaunchHeadDim<T, 96, kWave>(launch, stream, p);
      case 128:
        return LaunchHeadDim<T, 128, kWave>(launch, stream, p);
      default:
        return LaunchHeadDim<T, 256, kWave>(launch, stream, p);
    }
  });
}

}  // namespace ashlar::gpu_kernels
