// out[m, tiles] of a packed weight. Few rows of x: codes are decoded in registers, and the weight
// is read once. Many: kGemmTiles tiles are decoded into cache and used for all rows; a tile left
// over is treated as for few.
#pragma once

#include <math.h>
#include <string.h>

#include "quant_dot.h"

namespace ashlar::cpu::ASHLAR_CPU_LEVEL {

// Rows and tiles whose accumulators, one integer and one float, stay in
// registers.
#ifdef __AVX512F__
inline constexpr int kDirectRows = 8;
inline constexpr int kGemmRows = 6, kGemmTiles = 2;  // 24 of 32 registers
#elif defined(__AVX2__)
inline constexpr int kDirectRows = 2;  // two registers each, of 16
inline constexpr int kGemmRows = 3, kGemmTiles = 1;
#else
inline constexpr int kDirectRows = 2;
inline constexpr int kGemmRows = 2, kGemmTiles = 1;
#endif
inline constexpr int kMostDirectRows = 8;  // beyond, decoding once is cheaper
inline constexpr int kChunkBlocks = 16;    // decoded at a time: 8 KiB a tile
inline constexpr int64_t kRowBlock =
    192;  // a multiple of kGemmRows; rows of x that pass decoded tiles

ASHLAR_INLINE XBlocks RowsFrom(const QuantMatmul& a, bool halves, int64_t row, int64_t block) {
  const int64_t blocks = a.x.k / kBlockColumns, starts = halves ? 2 : 1;
  return {a.x.codes + row * a.x.k + block * kBlockColumns,
          a.x.scale + row * blocks + block,
          a.x.scaled_sum + row * blocks + block,
          a.start + starts * (row * blocks + block),
          a.x.k,
          blocks};
}

// One tile's results of one row of x, with bias, to out.
ASHLAR_INLINE void StoreTile(const QuantMatmul& a, int64_t row, int64_t tile, F32x16 value) {
  const int64_t column = tile * kTileRows;
  float* out = a.out + row * a.out_stride + column;
  const int64_t left = a.rows - column;
  if (left >= kTileRows) {
    Store(out, a.bias ? Add(value, Load(a.bias + column)) : value);
  } else {
    StoreFirst(out, a.bias ? Add(value, LoadFirst(a.bias + column, left)) : value, left);
  }
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

struct Decoded {
  alignas(64) uint8_t codes[kGemmTiles][512 * kChunkBlocks];
  alignas(64) float scales[kGemmTiles][48 * kChunkBlocks];
  alignas(64) float acc[kRowBlock][kGemmTiles * kTileRows];
};

// Decodes blocks [begin, begin + blocks) of a tile.
template <class F>
static __attribute__((noinline)) void Decode(const uint8_t* tile_codes, const uint8_t* tile_scales,
                                             int64_t begin, int64_t blocks, uint8_t* codes,
                                             float* scales) {
  for (int64_t b = 0; b < blocks; ++b) {
    const uint8_t* from = tile_codes + (begin + b) * F::kCodeBytes;
    uint8_t* to = codes + 512 * b;
    StoreBytes(to, F::template Codes<0>(from));
    StoreBytes(to + 64, F::template Codes<1>(from));
    StoreBytes(to + 128, F::template Codes<2>(from));
    StoreBytes(to + 192, F::template Codes<3>(from));
    StoreBytes(to + 256, F::template Codes<4>(from));
    StoreBytes(to + 320, F::template Codes<5>(from));
    StoreBytes(to + 384, F::template Codes<6>(from));
    StoreBytes(to + 448, F::template Codes<7>(from));
    const BlockScales s = F::Scales(tile_scales, begin + b);
    Store(scales + 48 * b, s.low);
    Store(scales + 48 * b + 16, s.high);
    Store(scales + 48 * b + 32, s.minimum);
  }
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

// Rows [row, row + rows) against decoded blocks; meanwhile fetches [ahead,
// ahead + ahead_bytes) and the lines that the result goes to.
template <class U>
static __attribute__((noinline)) void GemmBlocks(const QuantMatmul& a, int64_t row, int64_t rows,
                                                 int64_t block, int64_t blocks, Decoded& d,
                                                 const uint8_t* ahead, int64_t ahead_bytes,
                                                 const float* out) {
  const int64_t fetch = ahead_bytes * kGemmRows / rows + 64;
  const uint8_t* end = ahead + ahead_bytes;
  int64_t r = 0;
  for (; r + kGemmRows <= rows; r += kGemmRows) {
    for (int64_t i = 0; i < fetch && ahead < end; i += 64, ahead += 64)
      __builtin_prefetch(ahead, 0, 2);
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
    GemmBlocks<U>(a, row, rows, block, blocks, d, ahead, share,
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
