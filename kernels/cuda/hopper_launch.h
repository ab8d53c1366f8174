// Launches of the Hopper attention kernel for one element type.
#pragma once

#include "ashlar_plugin.h"
#include "hopper_work.h"

namespace ashlar::hopper {

struct AttentionLaunch {
  gpu::Stream stream;
  int head_dim;
  unsigned blocks;
  CUtensorMap q_map, kv_map;
};

inline constexpr int kQueryRows = AttentionShape<128>::kRows;
constexpr bool HasHeadDim(int dim) { return dim == 64 || dim == 128 || dim == 256; }
constexpr int TileKeys(int head_dim) {
  return head_dim == 256 ? AttentionShape<256>::kKeys : AttentionShape<128>::kKeys;
}

gpu::Error LaunchBF16(const AttentionLaunch& launch, const AttentionParams& params);
gpu::Error LaunchF16(const AttentionLaunch& launch, const AttentionParams& params);
// After it, when tiles may have parts.
gpu::Error LaunchCombine(const AttentionLaunch& launch, ashlar_dtype dtype,
                         const AttentionParams& params);

}  // namespace ashlar::hopper
