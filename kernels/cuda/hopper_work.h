// What the Hopper attention kernel is given, the tiles that it works in and how blocks share them.
// A tile has the query heads of one KV head for up to `tile_tokens` tokens of one sequence; its
// rows are (token, head of the group) pairs, token-major. Where there are too few tiles for the
// device, parts of a tile's keys are carried out apart and added up by another kernel.
#pragma once

#include "hopper.h"

namespace ashlar::hopper {

struct AttentionParams {
  const int32_t *block_table, *query_start, *context;
  int64_t table_stride;
  char* out;
  int64_t out_row_bytes;
  int sequences, kv_heads, group;
  int short_rows;                // sequences of no more rows are left out
  int tile_tokens;               // tokens of a tile: tile_tokens * group <= kRows
  int block_tokens, box_tokens;  // a box is what one copy brings: it lies in one block
  int block_units, head_units;   // from block to block and head to head, in the map's unit
  int entry_bytes;               // K and V of one token and head
  int window;                    // 0: full
  float scale_log2;              // scores in powers of two
  int* taken;                    // [2] zeros: tiles handed out after the first, blocks at the end
  int most_parts;                // of a tile
  float* parts;         // [part][tokens][q_heads][kHeadDim + 2]: sums, largest score, weights' sum
  int tokens, q_heads;  // of the call
};

inline constexpr int kPartKeys = 1024;  // a part for so many of a sequence's keys

// The tiles of `keys` keys that up to `tokens` tokens from `position` on see, and in how many
// parts.
struct KeyTiles {
  int first, last, parts;

  GPU_DEVICE KeyTiles(const AttentionParams& p, int context, int position, int tokens, int keys)
      : first(p.window > 0 ? max(0, position - p.window + 1) / keys : 0),
        last((position + tokens - 1) / keys),
        parts(min(MostParts(p, context), last - first + 1)) {}

  // Of a tile of such a sequence.
  GPU_DEVICE static int MostParts(const AttentionParams& p, int context) {
    return max(1, min(p.most_parts, context / kPartKeys));
  }
};

// Where the sums of one row over a part of its keys stand.
GPU_DEVICE float* PartOf(const AttentionParams& p, int part, int token, int head, int head_dim) {
  return p.parts + ((int64_t{part} * p.tokens + token) * p.q_heads + head) * (head_dim + 2);
}

template <int kHeadDim>
struct AttentionShape {
  static constexpr bool kWide = kHeadDim > 128;
  static constexpr int kConsumers = 2;  // warpgroups of 64 rows
  static constexpr int kRows = 64 * kConsumers;
  static constexpr int kKeys = kWide ? 64 : 128;  // of one tile
  static constexpr int kStages = 2;               // of K and of V
  static constexpr int kQueryStages = kWide ? 1 : 2;
  static constexpr int kThreads = 128 * (1 + kConsumers);
  // What setmaxnreg leaves each. A block begins with the most that all its threads can have alike.
  static constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;
  static_assert(kProducerRegisters + kConsumers * kConsumerRegisters <=
                (65536 / kThreads / 8 * 8) * (1 + kConsumers));

  static constexpr int kHalves = kHeadDim / 64;  // columns in rows of 128 bytes
  static constexpr int kTileBytes = kKeys * kHeadDim * 2;
  static constexpr int kQueryBytes = kRows * kHeadDim * 2;
  // Dynamic shared memory: tiles, barriers and what aligns the whole to 1024 bytes.
  static constexpr int kBarrierBytes = 1024;
  static constexpr size_t kSharedBytes =
      kQueryStages * kQueryBytes + 2 * kStages * kTileBytes + kBarrierBytes + 1024;
};

// One tile, as the producer hands it to the consumers.
struct Tile {
  int token, tokens;  // first of this tile in the batch, and how many
  int position;       // of the first token
  int kv_head;
  int first, last;                // key tiles: [first, last]
  int part, parts;                // which of the tile's parts; none when there are fewer
  int sequence, oldest, context;  // the sequence's keys that hold values: [oldest, context)
};

#if defined(__CUDA_ARCH__)

// Hands out tiles to one warp, all lanes together, for rising indices. The tiles of a sequence lie
// in line by heads whose keys fit the L2 together, then longest first, then by head, then by part.
class TileFinder {
 public:
  GPU_DEVICE explicit TileFinder(const AttentionParams& p) : p_(p) {}

  // False when there is no tile `index`.
  GPU_DEVICE bool Find(int index, int keys, Tile* tile) {
    const int lane = gpu::ThreadX() % 32;
    for (; first_ < p_.sequences; first_ += 32) {
      const int sequence = first_ + lane;
      int start = 0, queries = 0, tiles = 0, parts = 1;
      if (sequence < p_.sequences) {
        start = p_.query_start[sequence];
        queries = p_.query_start[sequence + 1] - start;
        if (queries * p_.group > p_.short_rows) {
          tiles = (queries + p_.tile_tokens - 1) / p_.tile_tokens;
          parts = KeyTiles::MostParts(p_, p_.context[sequence]);
        }
      }
      int until = tiles * p_.kv_heads * parts;
      for (int step = 1; step < 32; step *= 2) {
        const int other = __shfl_up_sync(~0u, until, step);
        if (lane >= step) until += other;
      }
      const unsigned after = __ballot_sync(~0u, before_ + until > index);
      if (after == 0) {
        before_ += __shfl_sync(~0u, until, 31);
        continue;
      }
      const int owner = __ffs(after) - 1;
      const auto of_owner = [&](int value) { return __shfl_sync(~0u, value, owner); };
      tiles = of_owner(tiles);
      parts = of_owner(parts);
      const int rank = index - before_ - of_owner(until) + tiles * p_.kv_heads * parts;
      tile->part = rank % parts;
      Fill(first_ + owner, of_owner(start), of_owner(queries), tiles, rank / parts, keys, tile);
      return true;
    }
    return false;
  }

 private:
  GPU_DEVICE void Fill(int sequence, int start, int queries, int tiles, int rank, int keys,
                       Tile* tile) {
    constexpr int64_t kNear = 40 << 20;  // bytes of K and V that stay in the L2
    const int context = p_.context[sequence];
    const int64_t head_bytes = int64_t{context} * p_.entry_bytes;
    int together =
        head_bytes * p_.kv_heads <= kNear ? p_.kv_heads : static_cast<int>(kNear / head_bytes);
    if (together < 1) together = 1;
    const int section = rank / (tiles * together);
    rank -= section * tiles * together;
    const int heads = min(together, p_.kv_heads - section * together);
    const int first_token = (tiles - 1 - rank / heads) * p_.tile_tokens;
    tile->sequence = sequence;
    tile->kv_head = section * together + rank % heads;
    tile->token = start + first_token;
    tile->tokens = min(p_.tile_tokens, queries - first_token);
    tile->position = context - queries + first_token;
    tile->context = context;
    tile->oldest = p_.window > 0 ? max(0, context - queries - p_.window + 1) : 0;
    const KeyTiles all(p_, context, tile->position, tile->tokens, keys);
    const int count = all.last - all.first + 1;
    tile->parts = all.parts;
    tile->first = all.first + count * tile->part / all.parts;
    tile->last = all.first + count * (tile->part + 1) / all.parts - 1;
  }

  const AttentionParams& p_;
  int first_ = 0, before_ = 0;  // tiles of sequences before `first_`
};

#endif

}  // namespace ashlar::hopper
