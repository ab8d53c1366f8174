// Products of up to 64 tokens with wgmma: rows of the weight are the instruction's 64 rows, tokens
// its columns. All tiles of the weight, cut into steps of k, make one line of units that is divided
// over the blocks, which all run at once: evenly, or so that each has whole tiles or an even share
// of one. A tile that lies in several blocks is added up by the first of them, or by each in part
// where they end together.
#pragma once

#include <cuda.h>

#include "ashlar_plugin.h"
#include "gpu/fused_product.h"
#include "gpu/gpu.h"

namespace ashlar::hopper {

struct MatmulParams : gpu_kernels::FusedProductParams {
  bool fours;        // out and residual allow accesses of four values
  int tiles, depth;  // of the weight, and steps of k in each
  int line;          // units that blocks divide evenly; those of no tile are left out
  int shares;        // blocks that share each tile alike; 0: an even share of all for each
  float* parts;      // a tile a block: its sums that others finish; kNoPart between launches
};

// Bits of a place of parts that has none: a number's are others.
inline constexpr uint32_t kNoPart = ~0u;

inline constexpr int kMostTokens = 64;
inline constexpr int kTileRows = 128;  // of the weight
inline constexpr int kRowBytes = 128;  // of one row in a step of k

template <int kColumns>
struct MatmulShape {
  static constexpr int kTokens = kColumns;
  static constexpr int kConsumers = 2;  // warpgroups of 64 rows
  static constexpr int kConsumerThreads = 128 * kConsumers;
  static constexpr int kThreads = kConsumerThreads + 32;
  static constexpr int kWeightBytes = kTileRows * kRowBytes;
  static constexpr int kXBytes = kTokens * kRowBytes;
  static constexpr int kStageBytes = kWeightBytes + kXBytes;
  static constexpr int kSumBytes = kTokens * (kTileRows + 4) * 4;
  // One block a multiprocessor: shares are even, so two of one kernel on one and none on another
  // would take twice as long. Blocks of the next kernel begin as these end, one by one.
  static constexpr int kStages = ((192 << 10) - kSumBytes) / kStageBytes;
  // Stages, sums, barriers and what aligns the whole to 1024 bytes.
  static constexpr size_t kSharedBytes = kStages * kStageBytes + kSumBytes + 1024 + 1024;
};

struct MatmulLaunch {
  gpu::Stream stream;
  unsigned blocks;
  CUtensorMap weight_map, x_map;
};

// The columns of an instruction that so many tokens need.
constexpr int TokenColumns(int tokens) {
  int columns = 8;
  while (columns < tokens) columns *= 2;
  return columns;
}

gpu::Error LaunchMatmulBF16(const MatmulLaunch& launch, const MatmulParams& params);
gpu::Error LaunchMatmulF16(const MatmulLaunch& launch, const MatmulParams& params);
gpu::Error LaunchMatmulF8(const MatmulLaunch& launch, const MatmulParams& params);

}  // namespace ashlar::hopper
