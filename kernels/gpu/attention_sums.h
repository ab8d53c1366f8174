// What a wave has summed up over its keys, as others read it in shared memory, and how what several
// have of a row is added up.
#pragma once

#include "attention_math.h"

namespace ashlar::gpu_kernels {

// Four columns of a row over some keys: their weighted sums relative to the largest score, and the
// sum of weights.
struct Sums {
  float top = -INFINITY, weight = 0;
  gpu::Four value = {};
};
GPU_DEVICE Sums AddUp(const Sums* sums, int count) {
  Sums all;
#pragma unroll
  for (int i = 0; i < count; ++i) all.top = fmaxf(all.top, sums[i].top);
  const float base = all.top == -INFINITY ? 0 : all.top;
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const float factor = gpu::Exp2(sums[i].top - base);
    all.weight += sums[i].weight * factor;
    for (int e = 0; e < 4; ++e) all.value.value[e] += sums[i].value.value[e] * factor;
  }
  return all;
}

// A wave's sums stand in the room of the keys that it attends to at a time.
template <class Stored, int kHeadDim, int kWave, bool kStrip>
struct WaveSums {
  using Tile = CacheTile<Stored, kHeadDim>;
  using Layout = MatrixLayout<kWave>;
  static constexpr int kStepKeys = Tile::kHalves * kHalf;
  static constexpr int kPitch = kStepKeys * Tile::kPitch / 4 / kTile;  // floats, of a row
  static_assert(kPitch >= kHeadDim && kPitch % 32 == 0);
  static constexpr int kTotals = kTile * 2;  // floats of a wave: largest score, sum of weights

  // Sums of one row lie in another order than the next's, so that writes of rows meet no bank
  // twice.
  GPU_DEVICE static int At(int row, int column) { return row * kPitch + (column ^ (row & 3) << 3); }

  // Of the whole wave, after math.End(). `scale` is that of the scores.
  template <class Math>
  GPU_DEVICE static void Put(const Math& math, int rows, float scale, float* room, float* totals) {
    const int lane = gpu::ThreadX() % kWave;
    if constexpr (kStrip) {
      PutStrip(math, rows, room);
    } else {
      PutAll(math, room);
    }
#pragma unroll
    for (int slot = 0; slot < (kStrip ? 1 : Layout::kSlots); ++slot) {
      // The lanes of a row hold the same two numbers.
      float* total = totals + Layout::SlotRow(lane, slot) * 2;
      if (Layout::Quarter(lane) == 0) {
        total[0] = math.top[0][slot] * scale;
        total[1] = math.weight[0][slot];
      }
    }
  }
  // Four columns from there.
  GPU_DEVICE static Sums Get(const float* room, const float* totals, int row, int column) {
    return {totals[2 * row], totals[2 * row + 1],
            *reinterpret_cast<const gpu::Four*>(room + At(row, column))};
  }

 private:
  // What At exchanges by does not depend on the slot, and touches neither a column's lowest three
  // bits nor those from the sixth on: a lane has few places, and the rest is known when compiling.
  template <class Math>
  GPU_DEVICE static void PutAll(const Math& math, float* room) {
    constexpr bool kNarrow = kWave == 32;  // elements 0-3 and 4-7 of two slots, else one of four
    constexpr int kParts = kNarrow ? 2 : 1, kStep = Tile::Column(1) - Tile::Column(0);
    const int lane = gpu::ThreadX() % kWave;
    int place[2][kParts];
#pragma unroll
    for (int odd = 0; odd < 2; ++odd) {
#pragma unroll
      for (int h = 0; h < kParts; ++h) {
        place[odd][h] = At(Layout::SlotRow(lane, 0), Math::Column(lane, odd, 4 * h));
      }
    }
#pragma unroll
    for (int e = 0; e < Layout::kElements; ++e) {
      const int slot = Layout::Slot(e), step = kNarrow ? e % 2 : e;
      if (slot > 0 && !math.both_slots) continue;
#pragma unroll
      for (int v = 0; v < Tile::kColumnTiles; ++v) {
        room[place[v % 2][kNarrow ? e / 4 : 0] + slot * 8 * kPitch + v / 2 * 2 * kTile +
             step * kStep] = math.sum[0][v].element[e];
      }
    }
  }

  template <class Math>
  GPU_DEVICE static void PutStrip(const Math& math, int rows, float* room) {
    const int lane = gpu::ThreadX() % kWave;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int row = Layout::OtherRow(lane, e);
      if (row >= rows) continue;
      const int place = At(row, Math::Column(lane, 0, e));
#pragma unroll
      for (int v = 0; v < Tile::kColumnTiles; ++v)
        room[place ^ v * kTile] = math.sum[0][v].element[e];
    }
  }
};

}  // namespace ashlar::gpu_kernels
