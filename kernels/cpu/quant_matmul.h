// out[m, tiles] of a packed weight. Few rows of x: codes are decoded in registers, and the weight
// is read once. Many: a pair of tiles is decoded into cache and used for all rows.
#pragma once

#include "quant_dot.h"

namespace ashlar::cpu::ASHLAR_CPU_LEVEL {

#ifdef __AVX512F__
inline constexpr int kGemmRows = 6, kGemmTiles = 2;  // 24 accumulators of 32 registers
#elif defined(__AVX2__)
inline constexpr int kGemmRows = 3, kGemmTiles = 1;  // two registers each, of 16
#else
inline constexpr int kGemmRows = 2, kGemmTiles = 1;
#endif
inline constexpr int kDirectRows = 4;      // up to here codes are decoded for each use
inline constexpr int kChunkBlocks = 32;    // decoded at a time: 16 KiB a tile
inline constexpr int64_t kRowBlock = 128;  // rows of x that pass one decoded pair of tiles

ASHLAR_INLINE XBlocks RowsFrom(const QuantMatmul& a, int64_t row, int64_t block) {
  return {a.x.codes + row * a.x.k + block * kBlockColumns, a.x.scale + row * (a.x.k / 32) + block,
          a.x.half_sum + row * (a.x.k / 16) + 2 * block, a.x.k, a.offset};
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
ASHLAR_INLINE void DirectRows(const QuantMatmul& a, int64_t row) {
  for (int64_t tile = a.tile_begin; tile < a.tile_end; ++tile) {
    const uint8_t* scales = a.tiles + tile * a.tile_bytes;
    const uint8_t* codes = scales + a.codes_offset;
    F32x16 acc[kRows][1];
    for (int r = 0; r < kRows; ++r) acc[r][0] = Set1(0.0f);
    DotBlocks<F, kRows, 1>(&codes, &scales, a.x.k / kBlockColumns, RowsFrom(a, row, 0), acc);
    for (int r = 0; r < kRows; ++r) StoreTile(a, row + r, tile, acc[r][0]);
  }
}

// Decodes blocks [begin, begin + blocks) of a tile.
template <class F>
ASHLAR_INLINE void Decode(const uint8_t* tile_codes, const uint8_t* tile_scales, int64_t begin,
                          int64_t blocks, uint8_t* codes, float* scales) {
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

template <int kTiles>
struct Decoded {
  alignas(64) uint8_t codes[kTiles][512 * kChunkBlocks];
  alignas(64) float scales[kTiles][48 * kChunkBlocks];
  alignas(64) float acc[kRowBlock][kTiles * kTileRows];
};

template <class F, int kRows, int kTiles>
ASHLAR_INLINE void GemmRows(const QuantMatmul& a, int64_t row, int64_t block, int64_t blocks,
                            Decoded<kTiles>& d, float* sums) {
  const uint8_t *codes[kTiles], *scales[kTiles];
  F32x16 acc[kRows][kTiles];
  for (int t = 0; t < kTiles; ++t) {
    codes[t] = d.codes[t];
    scales[t] = (const uint8_t*)d.scales[t];
    for (int r = 0; r < kRows; ++r)
      acc[r][t] = block == 0 ? Set1(0.0f) : Load(sums + (r * kTiles + t) * kTileRows);
  }
  DotBlocks<Unpacked<F>, kRows, kTiles>(codes, scales, blocks, RowsFrom(a, row, block), acc);
  for (int r = 0; r < kRows; ++r)
    for (int t = 0; t < kTiles; ++t) Store(sums + (r * kTiles + t) * kTileRows, acc[r][t]);
}

template <class F, int kTiles, int kRows>
ASHLAR_INLINE void GemmLastRows(const QuantMatmul& a, int64_t row, int64_t rows, int64_t block,
                                int64_t blocks, Decoded<kTiles>& d, float* sums) {
  if constexpr (kRows > 0) {
    if (rows == kRows)
      GemmRows<F, kRows, kTiles>(a, row, block, blocks, d, sums);
    else
      GemmLastRows<F, kTiles, kRows - 1>(a, row, rows, block, blocks, d, sums);
  }
}

// Tiles [tile, tile + kTiles) against rows [row, row + rows) of x.
template <class F, int kTiles>
static __attribute__((noinline)) void GemmTiles(const QuantMatmul& a, int64_t tile, int64_t row,
                                                int64_t rows) {
  Decoded<kTiles> d;
  const int64_t all = a.x.k / kBlockColumns;
  for (int64_t block = 0; block < all; block += kChunkBlocks) {
    const int64_t blocks = all - block < kChunkBlocks ? all - block : kChunkBlocks;
    for (int t = 0; t < kTiles; ++t) {
      const uint8_t* scales = a.tiles + (tile + t) * a.tile_bytes;
      Decode<F>(scales + a.codes_offset, scales, block, blocks, d.codes[t], d.scales[t]);
    }
    int64_t r = 0;
    for (; r + kGemmRows <= rows; r += kGemmRows)
      GemmRows<F, kGemmRows, kTiles>(a, row + r, block, blocks, d, d.acc[r]);
    GemmLastRows<F, kTiles, kGemmRows - 1>(a, row + r, rows - r, block, blocks, d, d.acc[r]);
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int t = 0; t < kTiles; ++t)
      StoreTile(a, row + r, tile + t, Load(d.acc[r] + t * kTileRows));
}

template <class F>
static void MatmulQuant(const QuantMatmul& a) {
  if (a.x.m == 1) return DirectRows<F, 1>(a, 0);
  if (a.x.m == 2) return DirectRows<F, 2>(a, 0);
  if (a.x.m == 3) return DirectRows<F, 3>(a, 0);
  if (a.x.m == 4) return DirectRows<F, 4>(a, 0);
  static_assert(kDirectRows == 4);
  for (int64_t row = 0; row < a.x.m; row += kRowBlock) {
    const int64_t rows = a.x.m - row < kRowBlock ? a.x.m - row : kRowBlock;
    int64_t tile = a.tile_begin;
    for (; tile + kGemmTiles <= a.tile_end; tile += kGemmTiles)
      GemmTiles<F, kGemmTiles>(a, tile, row, rows);
    for (; tile < a.tile_end; ++tile) GemmTiles<F, 1>(a, tile, row, rows);
  }
}

static void QuantizeRow(const float* x, int64_t k, int8_t* codes, float* scale, int32_t* half_sum) {
  for (int64_t c = 0; c < k; c += kBlockColumns) {
    const F32x16 a = Load(x + c), b = Load(x + c + 16);
    const float most = ReduceMax(Max(Abs(a), Abs(b)));
    const float inverse = most > 0.0f ? 127.0f / most : 0.0f;
    const F32x16 factor = Set1(inverse);
    scale[c / 32] = most / 127.0f;
    half_sum[c / 16] = ReduceAddI(StoreInt8(codes + c, Mul(a, factor)));
    half_sum[c / 16 + 1] = ReduceAddI(StoreInt8(codes + c + 16, Mul(b, factor)));
  }
}

}  // namespace ashlar::cpu::ASHLAR_CPU_LEVEL
