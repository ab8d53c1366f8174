// A wave's attention over keys in shared memory: scores of its rows, weights relative to the
// largest score seen so far, and the weighted sum of values. Scores and sums stay in registers.
#pragma once

#include "attention_rows.h"
#include "cache_tile.h"

namespace ashlar::gpu_kernels {

// kRowTiles tiles of 16 rows against kKeyTiles tiles of 16 keys at a time.
template <class Stored, int kHeadDim, int kWave, int kRowTiles, int kKeyTiles>
struct AttentionMath {
  using Tile = CacheTile<Stored, kHeadDim>;
  using T = Multiplied<Stored>;
  using Layout = MatrixLayout<kWave>;
  static constexpr int kSlots = Layout::kSlots;

  // Of row Layout::SlotRow(lane, slot): its last visible key, -1 for a row that is none; the
  // largest score so far, and this lane's share of the sum of weights.
  int position[kRowTiles][kSlots];
  float top[kRowTiles][kSlots], weight[kRowTiles][kSlots];
  Accumulator<kWave> sum[kRowTiles][Tile::kColumnTiles];
  Accumulator<kWave> scores[kRowTiles][kKeyTiles];
  bool both_slots = true;

  // Rows `first` and on of the packed rows.
  GPU_DEVICE void Begin(const AttentionParams& p, const RowTile& rows, int first) {
    const int lane = gpu::ThreadX() % kWave;
    both_slots = rows.rows - first > kTile / kSlots;
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int slot = 0; slot < kSlots; ++slot) {
        const int row = first + r * kTile + Layout::SlotRow(lane, slot);
        position[r][slot] = row < rows.rows ? rows.Position(p, row) : -1;
        top[r][slot] = -INFINITY;
        weight[r][slot] = 0;
      }
#pragma unroll
      for (int v = 0; v < Tile::kColumnTiles; ++v) {
        for (int e = 0; e < Layout::kElements; ++e) sum[r][v].element[e] = 0;
      }
    }
  }

  // Scores with the keys that lie in `tile`; query(row tile, chunk) is the operand of the rows.
  template <class Query>
  GPU_DEVICE void Score(const char* tile, const Query& query) {
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int t = 0; t < kKeyTiles; ++t) {
        for (int e = 0; e < Layout::kElements; ++e) scores[r][t].element[e] = 0;
      }
    }
#pragma unroll
    for (int c = 0; c < Tile::kChunks; ++c) {
      Operand<kWave> q[kRowTiles];
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) q[r] = query(r, c);
#pragma unroll
      for (int t = 0; t < kKeyTiles; ++t) {
        const Operand<kWave> k = LoadKeys<Stored, kHeadDim, kWave>(tile, t * kTile, c);
#pragma unroll
        for (int r = 0; r < kRowTiles; ++r) Multiply<T, kWave>(scores[r][t], q[r], k);
      }
    }
  }

  // Takes away the scores of keys that a row does not see; the first is `key`.
  GPU_DEVICE void Mask(int key, int window) {
    const int lane = gpu::ThreadX() % kWave;
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int t = 0; t < kKeyTiles; ++t) {
#pragma unroll
        for (int e = 0; e < Layout::kElements; ++e) {
          const int at = key + t * kTile + Layout::OtherRow(lane, e);
          const int last = position[r][Layout::Slot(e)];
          const bool sees = at <= last && (window == 0 || at > last - window);
          if (!sees) scores[r][t].element[e] = -INFINITY;
        }
      }
    }
  }

  // Turns scores into weights and rescales what was summed. `scale` > 0 brings scores to powers of
  // two.
  GPU_DEVICE void Weigh(float scale) {
    float base[kRowTiles][kSlots], shrink[kRowTiles][kSlots];
    bool shrinks = false;
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int slot = 0; slot < kSlots; ++slot) {
        if (!Uses(slot)) continue;
        const float largest = RowMax<kWave>(Largest(r, slot));
        // A row that has seen no key yet has weights of 2^-inf.
        base[r][slot] = largest == -INFINITY ? 0 : largest * scale;
        shrink[r][slot] = gpu::Exp2(top[r][slot] * scale - base[r][slot]);
        shrinks |= shrink[r][slot] != 1;
        top[r][slot] = largest;
      }
    }
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int slot = 0; slot < kSlots; ++slot) {
        float total = 0;
#pragma unroll
        for (int t = 0; t < kKeyTiles; ++t) {
#pragma unroll
          for (int e = 0; e < Layout::kElements; ++e) {
            if (Layout::Slot(e) != slot) continue;
            float& score = scores[r][t].element[e];
            score = Uses(slot) ? gpu::Exp2(score * scale - base[r][slot]) : 0;
            total += score;
          }
        }
        if (Uses(slot)) weight[r][slot] = weight[r][slot] * shrink[r][slot] + total;
      }
    }
    // Once the largest scores have been met, nothing shrinks.
    if (!gpu::Any<kWave>(shrinks)) return;
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int slot = 0; slot < kSlots; ++slot) {
        if (!Uses(slot)) continue;
#pragma unroll
        for (int v = 0; v < Tile::kColumnTiles; ++v) {
#pragma unroll
          for (int e = 0; e < Layout::kElements; ++e) {
            if (Layout::Slot(e) == slot) sum[r][v].element[e] *= shrink[r][slot];
          }
        }
      }
    }
  }
  // Of a row on this lane, before other lanes are asked.
  GPU_DEVICE float Largest(int r, int slot) {
    float largest = top[r][slot];
#pragma unroll
    for (int t = 0; t < kKeyTiles; ++t) {
#pragma unroll
      for (int e = 0; e < Layout::kElements; ++e) {
        if (Layout::Slot(e) == slot) largest = fmaxf(largest, scores[r][t].element[e]);
      }
    }
    return largest;
  }
  // Whether any of the lanes' rows of this slot is one: a few rows leave the second unused.
  GPU_DEVICE bool Uses(int slot) { return kRowTiles > 1 || slot == 0 || both_slots; }

  GPU_DEVICE void AddValues(const char* tile) {
#pragma unroll
    for (int t = 0; t < kKeyTiles; t += Tile::kHalves) {
      Operand<kWave> weights[kRowTiles];
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) {
        weights[r] = AsOperand<T, kWave, Tile::kHalves>(&scores[r][t]);
      }
#pragma unroll
      for (int v = 0; v < Tile::kColumnTiles; ++v) {
        const Operand<kWave> values = LoadValues<Stored, kHeadDim, kWave>(tile, t * kTile, v);
#pragma unroll
        for (int r = 0; r < kRowTiles; ++r) {
          Multiply<T, kWave, Tile::kHalves>(sum[r][v], weights[r], values);
        }
      }
    }
  }

  // After the last key: the sum of a row's weights, on each of its lanes.
  GPU_DEVICE void End() {
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int slot = 0; slot < kSlots; ++slot) {
        weight[r][slot] = RowSum<kWave>(weight[r][slot]);
      }
    }
  }

  // The column of the head that an element of sum[][v] belongs to.
  GPU_DEVICE static int Column(int lane, int v, int e) {
    return v * kTile + Tile::Column(Layout::OtherRow(lane, e));
  }
};

}  // namespace ashlar::gpu_kernels
