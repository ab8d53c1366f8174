// out[m, tiles] of a packed weight. Few rows of x: codes are decoded in registers, and the weight
// is read once. Many: kGemmTiles tiles are decoded into cache and used for all rows; a tile left
// over is treated as for few.
#pragma once

#include <math.h>
#include <string.h>

#include "quant_decode.h"
#include "store_tile.h"
#ifdef ASHLAR_CPU_TILES
#include "quant_tiles.h"
#endif

namespace ashlar::cpu::ASHLAR_CPU_LEVEL {

ASHLAR_INLINE void StoreTile(const QuantMatmul& a, int64_t row, int64_t tile, F32x16 value) {
  const int64_t column = tile * kTileRows;
  StoreTile(a.out + row * a.out_stride + column, a.bias ? a.bias + column : nullptr,
            a.rows - column, value);
}

template <class F, int kRows>
ASHLAR_INLINE void DirectTile(const QuantMatmul& a, int64_t row, int64_t tile) {
  const uint8_t* scales = a.tiles + tile * a.tile_bytes;
  const uint8_t* codes = scales + a.codes_offset;
  F32x16 acc[kRows][1];
  for (int r = 0; r < kRows; ++r) acc[r][0] = Set1(0.0f);
  DotBlocks<F, kRows, 1>(&codes, &scales, a.x.k / kBlockColumns, RowsFrom(a, F::kHalves, row, 0),
                         acc);
  for (int r = 0; r < kRows; ++r) StoreTile(a, row + r, tile, acc[r][0]);
}

// A power of two of rows a time; the tile stays in cache between them.
template <class F, int kRows>
ASHLAR_INLINE void DirectRows(const QuantMatmul& a, int64_t row, int64_t tile) {
  for (; row + kRows <= a.x.m; row += kRows) DirectTile<F, kRows>(a, row, tile);
  if constexpr (kRows > 1) DirectRows<F, kRows / 2>(a, row, tile);
}

template <class F>
static __attribute__((noinline)) void DirectTiles(const QuantMatmul& a, int64_t begin,
                                                  int64_t end) {
  for (int64_t tile = begin; tile < end; ++tile) DirectRows<F, kDirectRows>(a, 0, tile);
}

template <class U, int kRows>
ASHLAR_INLINE void GemmRows(const QuantMatmul& a, int64_t row, int64_t block, int64_t blocks,
                            const Decoded& d, float* sums) {
  constexpr int kTiles = kGemmTiles;
  const uint8_t *codes[kTiles], *scales[kTiles];
  F32x16 acc[kRows][kTiles];
  for (int t = 0; t < kTiles; ++t) {
    codes[t] = d.codes[t];
    scales[t] = (const uint8_t*)d.scales[t];
    for (int r = 0; r < kRows; ++r)
      acc[r][t] = block == 0 ? Set1(0.0f) : Load(sums + (r * kTiles + t) * kTileRows);
  }
  DotBlocks<U, kRows, kTiles>(codes, scales, blocks, RowsFrom(a, U::kHalves, row, block), acc);
  for (int r = 0; r < kRows; ++r)
    for (int t = 0; t < kTiles; ++t) Store(sums + (r * kTiles + t) * kTileRows, acc[r][t]);
}

// Rows [row, row + rows) against decoded blocks; meanwhile fetches `ahead` and the lines that the
// result goes to.
template <class U>
static __attribute__((noinline)) void GemmBlocks(const QuantMatmul& a, int64_t row, int64_t rows,
                                                 int64_t block, int64_t blocks, Decoded& d,
                                                 Ahead ahead, const float* out) {
  int64_t r = 0;
#ifdef ASHLAR_CPU_TILES
  r = TileBlocks<U>(a, row, rows, block, blocks, d, ahead);
#endif
  for (; r + kGemmRows <= rows; r += kGemmRows) {
    ahead.FetchFor(kGemmRows);
    for (int i = 0; i < kGemmRows * kGemmTiles; ++i)
      __builtin_prefetch(out + (r + i / kGemmTiles) * a.out_stride + i % kGemmTiles * kTileRows, 1,
                         2);
    GemmRows<U, kGemmRows>(a, row + r, block, blocks, d, d.acc[r]);
  }
  for (; r + 4 <= rows; r += 4) GemmRows<U, 4>(a, row + r, block, blocks, d, d.acc[r]);
  for (; r + 2 <= rows; r += 2) GemmRows<U, 2>(a, row + r, block, blocks, d, d.acc[r]);
  for (; r < rows; ++r) GemmRows<U, 1>(a, row + r, block, blocks, d, d.acc[r]);
}

// kGemmTiles tiles from `tile` on against rows [row, row + rows) of x.
template <class F>
static __attribute__((noinline)) void GemmTiles(const QuantMatmul& a, int64_t tile, int64_t row,
                                                int64_t rows) {
  using U = Unpacked<F::kSigned, F::kMinimum, F::kHalves>;
  constexpr int kTiles = kGemmTiles;
  Decoded d;
  const int64_t all = a.x.k / kBlockColumns;
  const int64_t share = kTiles * a.tile_bytes * kChunkBlocks / all;
  const uint8_t* ahead = a.tiles + (tile + kTiles) * a.tile_bytes;
  for (int64_t block = 0; block < all; block += kChunkBlocks) {
    const int64_t blocks = all - block < kChunkBlocks ? all - block : kChunkBlocks;
    for (int t = 0; t < kTiles; ++t) {
      const uint8_t* scales = a.tiles + (tile + t) * a.tile_bytes;
      Decode<F>(scales + a.codes_offset, scales, block, blocks, d.codes[t], d.scales[t]);
    }
    GemmBlocks<U>(a, row, rows, block, blocks, d, {ahead, ahead + share, share / rows + 1},
                  a.out + row * a.out_stride + tile * kTileRows);
    ahead += share;
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int t = 0; t < kTiles; ++t)
      StoreTile(a, row + r, tile + t, Load(d.acc[r] + t * kTileRows));
}

template <class F>
static void MatmulQuant(const QuantMatmul& a) {
  if (a.x.m <= kMostDirectRows) return DirectTiles<F>(a, a.tile_begin, a.tile_end);
  const int64_t left = (a.tile_end - a.tile_begin) % kGemmTiles;
  for (int64_t row = 0; row < a.x.m; row += kRowBlock) {
    const int64_t rows = a.x.m - row < kRowBlock ? a.x.m - row : kRowBlock;
    for (int64_t tile = a.tile_begin; tile < a.tile_end - left; tile += kGemmTiles)
      GemmTiles<F>(a, tile, row, rows);
  }
  DirectTiles<F>(a, a.tile_end - left, a.tile_end);
}

static void QuantizeRow(const float* x, int64_t k, int8_t* codes, float* scale, float* scaled_sum,
                        int32_t* half_sum) {
  for (int64_t c = 0; c < k; c += kBlockColumns) {
    const F32x16 a = Load(x + c), b = Load(x + c + 16);
    const float most = ReduceMax(Max(Abs(a), Abs(b)));
    int32_t* half = half_sum + c / 16;
    // The maximum drops a NaN and a code cannot hold one; the sum finds it, the scale carries it
    // on.
    if (!__builtin_isfinite(most + 0.0f * ReduceAdd(Add(a, b)))) {
      memset(codes + c, 0, kBlockColumns);
      half[0] = half[1] = 0;
      scale[c / 32] = scaled_sum[c / 32] = NAN;
      continue;
    }
    const F32x16 factor = Set1(most > 0.0f ? 127.0f / most : 0.0f);
    half[0] = ReduceAddI(StoreInt8(codes + c, Mul(a, factor)));
    half[1] = ReduceAddI(StoreInt8(codes + c + 16, Mul(b, factor)));
    scale[c / 32] = most / 127.0f;
    scaled_sum[c / 32] = scale[c / 32] * (float)(half[0] + half[1]);
  }
}

}  // namespace ashlar::cpu::ASHLAR_CPU_LEVEL
