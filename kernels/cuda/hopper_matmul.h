// Products of up to 256 tokens with wgmma: rows of the weight are the instruction's 64 rows, tokens
// its columns. All tiles of the weight, cut into steps of k, make one line of units that is divided
// evenly over the blocks, which all run at once; a tile that lies in several blocks is added up by
// the first of them, or by each in part where they end together. With many tokens two blocks, a
// cluster, take neighbouring tiles in step and bring x to both at once: its bytes from the L2 would
// be the bound.
#pragma once

#include <cuda.h>

#include "ashlar_plugin.h"
#include "gpu/gpu.h"

namespace ashlar::hopper {

struct MatmulParams {
  int rows, tokens;  // of out
  int tiles, depth;  // of the weight, and steps of k in each
  // x that blocks bring whole, see hopper_matmul_x.h; else a tensor map tells of it, of the
  // weight's type and pitch.
  bool resident;
  int cols;
  const void* x;  // rows of whole eights, 16-byte aligned
  ashlar_dtype x_dtype;
  int64_t x_row_bytes;
  const float* norm;  // or NULL
  float eps;
  int gated;  // rows of the weight are 8 gates, 8 ups, 8 gates...
  ashlar_activation activation;
  const float *scales[2], *x_scales;  // of float8: [rows] of weight or gates, of ups; [tokens]
  const float* bias;                  // or NULL
  const void* residual;               // of out's type, or NULL
  int64_t residual_row_bytes;
  void* out;
  ashlar_dtype out_dtype;
  int64_t out_row_bytes;
  bool pairs;         // out and residual allow accesses of two values
  int shares;         // clusters that share each tile alike; 0: an even share of all for each
  float* parts;       // a tile a block: its sums that others finish
  uint32_t* arrived;  // [blocks] zeros: of the tile that a block has the first steps of
};

inline constexpr int kMostTokens = 256;
inline constexpr int kTileRows = 128;  // of the weight
inline constexpr int kRowBytes = 128;  // of one row in a step of k

inline constexpr int kMostResidentTokens = 8, kMostResidentBytes = 28 << 10;

constexpr int ClusterOf(int token_columns) { return token_columns >= 64 ? 2 : 1; }

template <int kColumns, bool kWithX>
struct MatmulShape {
  static constexpr int kTokens = kColumns;
  static constexpr bool kResident = kWithX;
  static constexpr int kCluster = ClusterOf(kTokens);
  static constexpr int kConsumers = 2;  // warpgroups of 64 rows
  static constexpr int kConsumerThreads = 128 * kConsumers;
  static constexpr int kThreads = kConsumerThreads + 32;
  static constexpr int kWeightBytes = kTileRows * kRowBytes,
                       kXBytes = kResident ? 0 : kTokens * kRowBytes;
  static constexpr int kStageBytes = kWeightBytes + kXBytes;
  // One block a multiprocessor: shares are even, so two of one kernel on one and none on another
  // would take twice as long. Blocks of the next kernel begin as these end, one by one.
  static constexpr int kRoom = 192 << 10, kKept = kResident ? 30 << 10 : 0;
  static constexpr int kStages = (kRoom - kKept) / kStageBytes;
  // Stages, barriers and what aligns the whole to 1024 bytes.
  static constexpr size_t kSharedBytes = kStages * kStageBytes + kKept + 1024 + 1024;
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
