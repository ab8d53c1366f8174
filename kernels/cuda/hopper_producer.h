// The warp that brings tiles of Q, K and V into shared memory by the copy engine.
#pragma once

#include "hopper_shared.h"

#if defined(ASHLAR_HOPPER)

namespace ashlar::hopper {

template <int kHeadDim>
class Producer {
 public:
  using Shape = AttentionShape<kHeadDim>;
  GPU_DEVICE Producer(SharedTiles<kHeadDim>& shared, const CUtensorMap* q_map,
                      const CUtensorMap* kv_map, const AttentionParams& params)
      : s_(shared), q_map_(q_map), kv_map_(kv_map), p_(params) {}

  GPU_DEVICE void Run() {
    TileFinder finder(p_);
    Tile tile;
    int index = gpu::BlockX();
    while (finder.Find(index, Shape::kKeys, &tile)) {
      int next = 0;
      if (lane_ == 0) next = atomicAdd(p_.taken, 1) + gpu::GridX();
      if (tile.part < tile.parts) {
        LoadQueries(tile);
        LoadKeysAndValues(tile);
      }
      index = __shfl_sync(~0u, next, 0);
    }
    Wait(&s_.q_empty[q_.stage], q_.parity ^ 1);
    if (lane_ == 0) {
      s_.more[q_.stage] = false;
      Arrive(&s_.q_full[q_.stage]);
      // The last block leaves the counters as it found them.
      if (atomicAdd(p_.taken + 1, 1) == gpu::GridX() - 1) p_.taken[0] = 0, p_.taken[1] = 0;
    }
  }

 private:
  // What this lane copies of a tile of keys: one box, or nothing.
  struct Box {
    int unit = -1, group;  // of the map; 8 tokens are a group
  };

  GPU_DEVICE void LoadQueries(const Tile& tile) {
    Wait(&s_.q_empty[q_.stage], q_.parity ^ 1);
    if (lane_ == 0) {
      s_.tile[q_.stage] = tile;
      s_.more[q_.stage] = true;
      const int rows = p_.tile_tokens * p_.group;
      ArriveExpecting(&s_.q_full[q_.stage], rows * kHeadDim * 2);
      for (int half = 0; half < Shape::kHalves; ++half) {
        CopyBox(s_.q[q_.stage] + half * Shape::kRows * 128, q_map_, &s_.q_full[q_.stage], 0,
                tile.kv_head * p_.group, tile.token, half);
      }
    }
    __syncwarp();
    q_.Next();
  }

  // K runs one tile ahead of V, as the consumers do.
  GPU_DEVICE void LoadKeysAndValues(const Tile& tile) {
    Box now = Look(tile, tile.last), ahead = Look(tile, tile.last - 1);
    LoadKeys(now);
    for (int at = tile.last; at > tile.first; --at) {
      const Box next = ahead;
      ahead = Look(tile, at - 2);
      LoadKeys(next);
      LoadValues(tile, now, at);
      now = next;
    }
    LoadValues(tile, now, tile.first);
  }

  GPU_DEVICE Box Look(const Tile& tile, int at) {
    Box box;
    const int key = at * Shape::kKeys + lane_ * p_.box_tokens;
    if (at < tile.first || lane_ * p_.box_tokens >= Shape::kKeys) return box;
    if (key >= tile.context || key + p_.box_tokens <= tile.oldest) return box;
    const int entry = key / p_.block_tokens;
    const int block = p_.block_table[tile.sequence * p_.table_stride + entry];
    box.unit = block * p_.block_units + tile.kv_head * p_.head_units;
    box.group = (key - entry * p_.block_tokens) / 8;
    return box;
  }

  // Copies the boxes; `half` is the first of K's or V's.
  GPU_DEVICE void Copy(const Box& box, char* to, int half, Barrier* full) {
    const int boxes = __popc(__ballot_sync(~0u, box.unit >= 0));
    if (lane_ == 0) ArriveExpecting(full, boxes * p_.box_tokens * kHeadDim * 2);
    __syncwarp();
    if (box.unit >= 0) {
      CopyBox(to + lane_ * p_.box_tokens * kHeadDim * 2, kv_map_, full, 0, 0, half, box.group,
              box.unit);
    }
  }

  GPU_DEVICE void LoadKeys(const Box& box) {
    Wait(&s_.k_empty[k_.stage], k_.parity ^ 1);
    Copy(box, s_.k[k_.stage], 0, &s_.k_full[k_.stage]);
    k_.Next();
  }

  // Weights of zero meet values that nobody wrote: those become zeros.
  GPU_DEVICE void LoadValues(const Tile& tile, const Box& box, int at) {
    Wait(&s_.v_empty[v_.stage], v_.parity ^ 1);
    char* const to = s_.v[v_.stage];
    const int from = tile.oldest - at * Shape::kKeys, until = tile.context - at * Shape::kKeys;
    if (from <= 0 && until >= Shape::kKeys) {
      Copy(box, to, Shape::kHalves, &s_.v_full[v_.stage]);
    } else {
      Copy(box, to, Shape::kHalves, &s_.landed);
      Wait(&s_.landed, landed_parity_);
      landed_parity_ ^= 1;
      ClearRows(to, 0, from);
      ClearRows(to, until, Shape::kKeys);
      FenceShared();
      __syncwarp();
      if (lane_ == 0) Arrive(&s_.v_full[v_.stage]);
    }
    v_.Next();
  }

  GPU_DEVICE void ClearRows(char* tile, int from, int until) {
    for (int row = from; row < until; ++row) {
      char* const first = tile + (row / 8 * Shape::kHalves * 8 + row % 8) * 128;
      for (int word = lane_; word < kHeadDim / 2; word += 32) {
        *reinterpret_cast<uint32_t*>(first + word / 32 * 1024 + word % 32 * 4) = 0;
      }
    }
  }

  SharedTiles<kHeadDim>& s_;
  const CUtensorMap *const q_map_, *const kv_map_;
  const AttentionParams& p_;
  const int lane_ = gpu::ThreadX() % 32;
  Ring<Shape::kQueryStages> q_;
  Ring<Shape::kStages> k_, v_;
  int landed_parity_ = 0;
};

}  // namespace ashlar::hopper

#endif
