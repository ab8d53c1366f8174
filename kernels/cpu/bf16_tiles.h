// bf16 weights, read in place, times x brought to tiles: 32 weight rows by 32 rows of x at a time
// in tile registers, weight rows first, so that the weight needs no packing. The order of every sum
// is fixed, but another than that of float_matmul.h.
// Bound: tile products; a weight is read from memory once.
#pragma once

#include "kernels.h"
#include "store_tile.h"
#include "tiles.h"

namespace ashlar::cpu::ASHLAR_CPU_LEVEL {

inline constexpr int kBf16Columns = 32;  // of a tile

// x [m, k] of bf16, rows of a multiple of 32 values with zeros behind k, to tiles: [16 rows of x]
// [32 columns] times [pair of columns][row of x][2]. Rows beyond m are zeros.
static void TileBf16Rows(uint16_t* tiles, const uint16_t* x, int64_t x_stride, int64_t rows) {
  for (int64_t k = 0; k < x_stride; k += kBf16Columns, tiles += kBf16Columns * 16) {
    F32x16 pairs[16];
    for (int r = 0; r < 16; ++r)
      pairs[r] = r < rows ? Load((const float*)(x + r * x_stride + k)) : Set1(0.0f);
    Transpose(pairs);
    for (int r = 0; r < 16; ++r) Store((float*)tiles + 16 * r, pairs[r]);
  }
}

enum : int { kSumAA, kSumAB, kSumBA, kSumBB, kWeightA, kWeightB, kRowsA, kRowsB };

// 16 weight rows from `row` on, 32 columns from k on; what lies outside is zero.
template <int kTile>
ASHLAR_INLINE void LoadWeights(const FloatMatmul& a, int64_t row, int64_t k) {
  const char* from = a.weight + row * a.weight_stride + k * 2;
  if (row + 16 <= a.row_end && k + kBf16Columns <= a.k)
    return TileLoad<kTile>(from, a.weight_stride);
  const int64_t rows = a.row_end - row < 16 ? a.row_end - row : 16;
  const int64_t columns = a.k - k < kBf16Columns ? a.k - k : kBf16Columns;
  alignas(64) char edge[16][kTileBytes] = {};
  for (int64_t r = 0; r < rows; ++r) memcpy(edge[r], from + r * a.weight_stride, columns * 2);
  TileLoad<kTile>(edge, kTileBytes);
}

// Sums [weight row][row of x] of weight rows from `row` and rows of x from x_row on, to out.
template <int kTile>
ASHLAR_INLINE void StoreSumTile(const FloatMatmul& a, int64_t row, int64_t x_row) {
  alignas(64) float sums[16][16];
  TileStore<kTile>(sums, kTileBytes);
  F32x16 values[16];
  for (int i = 0; i < 16; ++i) values[i] = Load(sums[i]);
  Transpose(values);
  for (int i = 0; i < 16 && x_row + i < a.m; ++i)
    StoreTile(a.out + (x_row + i) * a.out_stride + row, a.bias ? a.bias + row : nullptr,
              a.row_end - row, values[i]);
}

// The first rows of x meet a weight still in memory: fetches the rows that follow.
template <int kWeights>
ASHLAR_INLINE void FetchWeightsAhead(const FloatMatmul& a, int64_t row, int64_t k) {
  const char* next = a.weight + (row + 16 * kWeights) * a.weight_stride + k * 2;
  for (int r = 0; r < 16 * kWeights; ++r) __builtin_prefetch(next + r * a.weight_stride);
}

// kWeights * 16 weight rows from `row` on times kXs * 16 rows of x from x_row on.
template <int kWeights, int kXs>
static __attribute__((noinline)) void Bf16TileBlock(const FloatMatmul& a, int64_t row,
                                                    int64_t x_row) {
  const char* x = (const char*)a.x + x_row * a.x_stride * 2;
  const char* x_next = x + 16 * a.x_stride * 2;
  TileZero<kSumAA>();
  if constexpr (kXs == 2) TileZero<kSumAB>();
  if constexpr (kWeights == 2) TileZero<kSumBA>();
  if constexpr (kWeights == 2 && kXs == 2) TileZero<kSumBB>();
  for (int64_t k = 0; k < a.k; k += kBf16Columns) {
    if (x_row == 0) FetchWeightsAhead<kWeights>(a, row, k);
    LoadWeights<kWeightA>(a, row, k);
    if constexpr (kWeights == 2) LoadWeights<kWeightB>(a, row + 16, k);
    TileLoad<kRowsA>(x + k * 32, kTileBytes);
    TileDotBf16<kSumAA, kWeightA, kRowsA>();
    if constexpr (kWeights == 2) TileDotBf16<kSumBA, kWeightB, kRowsA>();
    if constexpr (kXs == 2) {
      TileLoad<kRowsB>(x_next + k * 32, kTileBytes);
      TileDotBf16<kSumAB, kWeightA, kRowsB>();
      if constexpr (kWeights == 2) TileDotBf16<kSumBB, kWeightB, kRowsB>();
    }
  }
  StoreSumTile<kSumAA>(a, row, x_row);
  if constexpr (kXs == 2) StoreSumTile<kSumAB>(a, row, x_row + 16);
  if constexpr (kWeights == 2) StoreSumTile<kSumBA>(a, row + 16, x_row);
  if constexpr (kWeights == 2 && kXs == 2) StoreSumTile<kSumBB>(a, row + 16, x_row + 16);
}

template <int kWeights>
ASHLAR_INLINE void Bf16TileRows(const FloatMatmul& a, int64_t row) {
  int64_t x_row = 0;
  for (; x_row + 16 < a.m; x_row += 32) Bf16TileBlock<kWeights, 2>(a, row, x_row);
  if (x_row < a.m) Bf16TileBlock<kWeights, 1>(a, row, x_row);
}

static void MatmulBf16Tiles(const FloatMatmul& a) {
  static constexpr TileConfig kConfig = [] {
    TileConfig config;
    for (int tile = 0; tile < kTileRegisters; ++tile) config.Set(tile, 16, kTileBytes);
    return config;
  }();
  const TileScope scope(kConfig);
  int64_t row = a.row_begin;
  for (; row + 16 < a.row_end; row += 32) Bf16TileRows<2>(a, row);
  if (row < a.row_end) Bf16TileRows<1>(a, row);
}

}  // namespace ashlar::cpu::ASHLAR_CPU_LEVEL
