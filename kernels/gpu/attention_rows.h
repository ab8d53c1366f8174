// What an attention launch is given, the tiles that it works in, and which rows belong to which
// block. A row is a (token, head of the group) pair of one sequence and KV head, token-major.
#pragma once

#include "matrix.h"

namespace ashlar::gpu_kernels {

struct AttentionParams {
  ashlar_attention args;
  int64_t q_row_bytes, out_row_bytes;  // between tokens
  int group;                           // query heads that share a KV head
  float scale_log2;                    // scores in powers of two
  int block_shift;                     // log2 of block_tokens, or -1
  bool aligned;                        // entries of the cache begin at multiples of 16 bytes
  bool only_long;                      // skip sequences that kSplitKeys carries out
  int split_keys, splits;              // kSplitKeys: keys of one block, blocks of one sequence
  // [sequences, kv_heads, splits, 16 rows, head_dim + 2]: weighted sum, then largest score and sum
  // of weights. NULL with one split.
  float* parts;
};

template <int kHeadDim, bool kSplitKeys>
struct AttentionShape {
  static constexpr bool kWide = kHeadDim > 128;
  static constexpr int kWaves = (kSplitKeys ? 2 : 4) / (kWide ? 2 : 1);
  static constexpr int kKeys = kSplitKeys ? kChunk * kWaves : (kWide ? 32 : 64);  // of one tile
  static constexpr int kWaveKeys = kSplitKeys ? kChunk : kKeys;
  static constexpr int kRows = kSplitKeys ? kTile : kTile * kWaves;
  static constexpr int kPaddedDim = (kHeadDim + kChunk - 1) / kChunk * kChunk;
  static constexpr int kChunks = kPaddedDim / kChunk;
  // Rows of K lie an odd multiple of 64 bytes apart and rows of V one of 16, so that the lanes of
  // one access meet all banks.
  static constexpr int kKeyPitch = kPaddedDim + (kPaddedDim % 64 == 0 ? 32 : 0);
  static constexpr int kValuePitch = (kHeadDim + 15) / 16 * 16 + 8;
#if defined(ASHLAR_GPU_HIP)
  static constexpr int kStages = 1;
#else
  static constexpr int kStages = 2;
#endif
  static constexpr int kStageElements = kKeys * (kKeyPitch + kValuePitch);
  static constexpr size_t kSharedBytes = 2 * (size_t{kStages} * kStageElements + kRows * kKeyPitch);
};

// The rows of one block: which sequence, and its packed rows from `first` on.
struct RowTile {
  int sequence = -1;
  int first = 0, rows = 0;  // rows: of the whole sequence
  int query_start = 0, queries = 0, context = 0;
};

GPU_DEVICE int PackedRows(const AttentionParams& p, int sequence) {
  return (p.args.query_start[sequence + 1] - p.args.query_start[sequence]) * p.group;
}

GPU_DEVICE RowTile TileOf(const AttentionParams& p, int sequence, int first) {
  RowTile tile;
  tile.sequence = sequence;
  tile.first = first;
  tile.rows = PackedRows(p, sequence);
  tile.query_start = p.args.query_start[sequence];
  tile.queries = p.args.query_start[sequence + 1] - tile.query_start;
  tile.context = p.args.context[sequence];
  return tile;
}

// Tiles of all sequences in one line: sequence s begins at floor(query_start[s] * group / rows) +
// s, which leaves room for the partly filled tile of each.
GPU_DEVICE RowTile FindTile(const AttentionParams& p, int index, int tile_rows) {
  int low = 0, high = p.args.sequences;  // the last sequence that begins at or before index
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    const int64_t begins = int64_t{p.args.query_start[middle]} * p.group / tile_rows + middle;
    if (begins <= index) {
      low = middle;
    } else {
      high = middle;
    }
  }
  const auto begins =
      static_cast<int>(int64_t{p.args.query_start[low]} * p.group / tile_rows + low);
  return TileOf(p, low, (index - begins) * tile_rows);
}

}  // namespace ashlar::gpu_kernels
