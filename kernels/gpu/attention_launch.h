// Launches of the attention kernels for one element type of the cache.
#pragma once

#include "attention_decode.h"
#include "attention_tile.h"

namespace ashlar::gpu_kernels {

inline constexpr int kAttentionHeadSizes[] = {32, 64, 80, 96, 128, 256};

// Which kernels a step needs.
struct AttentionLaunch {
  int wave = 0;
  int multiprocessors = 0;
  bool tiles = false;   // TileKernel
  bool decode = false;  // DecodeKernel
};

// kSuccess, or the first launch that failed. The head size is one of kAttentionHeadSizes.
gpu::Error LaunchAttentionBF16(const AttentionLaunch& launch, gpu::Stream stream,
                               const AttentionParams& params);
gpu::Error LaunchAttentionF16(const AttentionLaunch& launch, gpu::Stream stream,
                              const AttentionParams& params);
gpu::Error LaunchAttentionF8(const AttentionLaunch& launch, gpu::Stream stream,
                             const AttentionParams& params);

// Blocks of a DecodeKernel at most, and floats of `parts` that each of them needs.
inline int64_t DecodeBlocks(int multiprocessors) { return int64_t{3} * multiprocessors; }
inline int64_t PartFloats(int64_t head_dim) { return 2 * kTile * (head_dim + 2); }

template <class Stored, int kHeadDim, int kWave, bool kStrip>
gpu::Error LaunchDecode(const AttentionLaunch& launch, gpu::Stream stream,
                        const AttentionParams& p) {
  using Shape = DecodeShape<Stored, kHeadDim, kStrip>;
  static_assert(Shape::kPartFloats * 2 == 2 * kTile * (kHeadDim + 2));
  return gpu::Launch(stream, {static_cast<unsigned>(Shape::kBlocks * launch.multiprocessors)},
                     Shape::kWaves * kWave, Shape::kSharedBytes,
                     DecodeKernel<Stored, kHeadDim, kWave, kStrip>, p);
}

template <class Stored, int kHeadDim, int kWave>
gpu::Error LaunchHeadDim(const AttentionLaunch& launch, gpu::Stream stream,
                         const AttentionParams& p) {
  if (launch.tiles) {
    using Shape = TileShape<Stored, kHeadDim>;
    const int64_t tiles = p.args.q.shape[0] * p.group / Shape::kRows + p.args.sequences;
    const gpu::Error error = gpu::Launch(
        stream, {static_cast<unsigned>(p.args.kv.kv_heads), static_cast<unsigned>(tiles)},
        Shape::kWaves * kWave, Shape::kSharedBytes, TileKernel<Stored, kHeadDim, kWave>, p);
    if (error != gpu::kSuccess) return error;
  }
  if (!launch.decode) return gpu::kSuccess;
  // An 8-bit cache asks for more work a byte.
  if constexpr (std::is_same_v<Stored, F8>) {
    if (int64_t{p.args.max_query} * p.group <= kWave / 4) {
      return LaunchDecode<Stored, kHeadDim, kWave, true>(launch, stream, p);
    }
  }
  return LaunchDecode<Stored, kHeadDim, kWave, false>(launch, stream, p);
}

template <class Stored>
gpu::Error LaunchAttention(const AttentionLaunch& launch, gpu::Stream stream,
                           const AttentionParams& p) {
  return gpu::WithWave(launch.wave, [&](auto wave) {
    constexpr int kWave = wave;
    switch (p.args.kv.head_dim) {
      case 32:
        return LaunchHeadDim<Stored, 32, kWave>(launch, stream, p);
      case 64:
        return LaunchHeadDim<Stored, 64, kWave>(launch, stream, p);
      case 80:
        return LaunchHeadDim<Stored, 80, kWave>(launch, stream, p);
      case 96:
        return LaunchHeadDim<Stored, 96, kWave>(launch, stream, p);
      case 128:
        return LaunchHeadDim<Stored, 128, kWave>(launch, stream, p);
      default:
        return LaunchHeadDim<Stored, 256, kWave>(launch, stream, p);
    }
  });
}

}  // namespace ashlar::gpu_kernels
