// A wave's attention over keys in shared memory: scores of its rows, weights relative to the
// largest score seen so far, and the weighted sum of values. Scores and sums stay in registers.
#pragma once

#include "attention_rows.h"
#include "cache_tile.h"

namespace ashlar::gpu_kernels {

// kRowTiles tiles of 16 rows against kKeyTiles tiles of 16 keys at a time. With kStrip the rows are
// those of a strip at most (see MultiplyStrip), which halves the work on values on NVIDIA. A row's
// weights are relative to a score that may be up to kSlack below its largest, so that few steps ask
// other lanes.
template <class Stored, int kHeadDim, int kWave, int kRowTiles, int kKeyTiles, bool kStrip = false>
struct AttentionMath {
  static_assert(!kStrip || kRowTiles == 1);
  using Tile = CacheTile<Stored, kHeadDim>;
  using T = Multiplied<Stored>;
  using Layout = MatrixLayout<kWave>;
  static constexpr int kSlots = Layout::kSlots;

  // A power of two: weights of 2^8 at most. None where bytes bound: the largest weight is 1 then,
  // which is not rounded.
  static constexpr float kSlack = kStrip || kRowTiles > 1 ? 8 : 0;

  // Of row Layout::SlotRow(lane, slot): its last visible key, -1 for a row that is none; the
  // largest score so far, nearly, and this lane's share of the sum of weights.
  int position[kRowTiles][kSlots];
  float top[kRowTiles][kSlots], weight[kRowTiles][kSlots];
  // Rows of the layout's S are rows, those of O columns; of a strip the other way around, and its
  // elements are the first four.
  Accumulator<kWave> sum[kRowTiles][Tile::kColumnTiles];
  Accumulator<kWave> scores[kRowTiles][kKeyTiles];
  bool both_slots = true;

  // Rows `first` and on of the packed rows.
  GPU_DEVICE void Begin(const AttentionParams& p, const RowTile& rows, int first) {
    Begin(rows.rows - first, [&](int row) { return rows.Position(p, first + row); });
  }
  // As many rows, each of which sees keys up to position(row).
  template <class PositionOf>
  GPU_DEVICE void Begin(int rows, const PositionOf& position_of) {
    const int lane = gpu::ThreadX() % kWave;
    both_slots = !kStrip && rows > kTile / kSlots;
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int slot = 0; slot < kSlots; ++slot) {
        const int row = r * kTile + Layout::SlotRow(lane, slot);
        position[r][slot] = row < rows ? position_of(row) : -1;
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

  // Turns scores into weights, and rescales what was summed of rows whose largest score has grown
  // by more than kSlack. `scale` > 0 brings scores to powers of two.
  GPU_DEVICE void Weigh(float scale) {
    float shrink[kRowTiles][kSlots];
    bool rises = false;
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int slot = 0; slot < kSlots; ++slot) {
        shrink[r][slot] = 1;
        if (Uses(slot)) rises |= (Largest(r, slot) - top[r][slot]) * scale > kSlack;
      }
    }
    const bool follows = gpu::Any<kWave>(rises);  // rare once large scores have been met
    if (follows) {
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
        for (int slot = 0; slot < kSlots; ++slot) {
          if (!Uses(slot)) continue;
          // A row that needs not follow stays, bit for bit: it does not depend on others.
          const float largest = RowMax<kWave>(Largest(r, slot)), before = top[r][slot];
          if (!((largest - before) * scale > kSlack)) continue;
          top[r][slot] = largest;
          shrink[r][slot] = gpu::Exp2(before * scale - Base(largest, scale));
        }
      }
    }
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int slot = 0; slot < kSlots; ++slot) {
        const float base = Base(top[r][slot], scale);
        float total = 0;
#pragma unroll
        for (int t = 0; t < kKeyTiles; ++t) {
#pragma unroll
          for (int e = 0; e < Layout::kElements; ++e) {
            if (Layout::Slot(e) != slot) continue;
            float& score = scores[r][t].element[e];
            score = Uses(slot) ? gpu::Exp2(score * scale - base) : 0;
            total += score;
          }
        }
        if (Uses(slot)) weight[r][slot] = weight[r][slot] * shrink[r][slot] + total;
      }
    }
    if (!follows) return;
    if constexpr (kStrip) return ShrinkStrip(shrink[0][0]);
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
  GPU_DEVICE void ShrinkStrip(float shrink) {
    const int lane = gpu::ThreadX() % kWave;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const float by = gpu::Shuffle<kWave>(shrink, Layout::LaneOf(Layout::OtherRow(lane, e)));
#pragma unroll
      for (int v = 0; v < Tile::kColumnTiles; ++v) sum[0][v].element[e] *= by;
    }
  }
  // A row that has seen no key yet has weights of 2^-inf.
  GPU_DEVICE static float Base(float largest, float scale) {
    return largest == -INFINITY ? 0 : largest * scale;
  }
  // Of a row on this lane, before other lanes are asked.
  GPU_DEVICE float Largest(int r, int slot) {
    float largest = -INFINITY;
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
  GPU_DEVICE bool Uses(int slot) { return kRowTiles > 1 || slot == 0 || (!kStrip && both_slots); }

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
          if constexpr (kStrip) {
            static_assert(Tile::kHalves == 2);
            MultiplyStrip<T, kWave>(sum[r][v].element, values, weights[r].vector[0]);
          } else {
            Multiply<T, kWave, Tile::kHalves>(sum[r][v], weights[r], values);
          }
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
    const int row = kStrip ? Layout::SlotRow(lane, Layout::Slot(e)) : Layout::OtherRow(lane, e);
    return v * kTile + Tile::Column(row);
  }
};

}  // namespace ashlar::gpu_kernels
