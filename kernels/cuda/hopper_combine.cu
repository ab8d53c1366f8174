// Adds up the parts that a tile's keys were divided into: a warp for a token's head.
#include "gpu/number.h"
#include "gpu/wave.h"
#include "hopper_launch.h"

namespace ashlar::hopper {
namespace {

constexpr int kWarps = 8;

template <class T>
GPU_KERNEL void GPU_BOUNDS(32 * kWarps)
    CombineKernel(const AttentionParams p, int head_dim, int keys) {
#if defined(__CUDA_ARCH__)
  gpu::ReleaseNext();
  gpu::WaitForPrevious();
  const int token = gpu::BlockX(), lane = gpu::ThreadX() % 32;
  const int head = gpu::BlockY() * kWarps + gpu::ThreadX() / 32;
  if (head >= p.q_heads) return;
  int sequence = 0, end = p.sequences;  // the last that begins at or before the token
  while (end - sequence > 1) {
    const int middle = (sequence + end) / 2;
    (p.query_start[middle] <= token ? sequence : end) = middle;
  }
  const int start = p.query_start[sequence], queries = p.query_start[sequence + 1] - start;
  if (token < start || token >= start + queries || queries * p.group <= p.short_rows) return;
  const int context = p.context[sequence];
  const int first = (token - start) / p.tile_tokens * p.tile_tokens;  // of the token's tile
  const KeyTiles tiles(p, context, context - queries + first, min(p.tile_tokens, queries - first),
                       keys);
  if (tiles.parts == 1) return;  // not divided

  float top = -INFINITY, share = 0;  // of this lane's part
  if (lane < tiles.parts) {
    const float* part = PartOf(p, lane, token, head, head_dim) + head_dim;
    top = part[0];
    share = part[1];
  }
  float largest = top;
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) {
    largest = fmaxf(largest, gpu::ShuffleXor<32>(largest, mask));
  }
  const float factor = gpu::Exp2(top - largest);
  const float inverse = 1 / gpu_kernels::WaveSum<32>(share * factor);
  char* const out = p.out + token * p.out_row_bytes + head * head_dim * 2;
  for (int column = 2 * lane; column < head_dim; column += 64) {
    float low = 0, high = 0;
    for (int part = 0; part < tiles.parts; ++part) {
      const float by = gpu::Shuffle<32>(factor, part) * inverse;
      const float2 pair =
          *reinterpret_cast<const float2*>(PartOf(p, part, token, head, head_dim) + column);
      low += pair.x * by;
      high += pair.y * by;
    }
    reinterpret_cast<uint32_t*>(out)[column / 2] = gpu_kernels::Pack<T>(low, high);
  }
#endif
}

}  // namespace

gpu::Error LaunchCombine(const AttentionLaunch& launch, ashlar_dtype dtype,
                         const AttentionParams& params) {
  const gpu::Grid grid{static_cast<unsigned>(params.tokens),
                       static_cast<unsigned>((params.q_heads + kWarps - 1) / kWarps)};
  return gpu::Launch(
      launch.stream, grid, 32 * kWarps, 0,
      dtype == ASHLAR_BF16 ? CombineKernel<gpu_kernels::BF16> : CombineKernel<gpu_kernels::F16>,
      params, launch.head_dim, TileKeys(launch.head_dim));
}

}  // namespace ashlar::hopper
