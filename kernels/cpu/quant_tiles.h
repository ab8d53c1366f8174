// Products of decoded blocks with 16 rows of x at a time in tile registers. The integer sums are
// exact and meet the scales in the order of quant_dot.h, so a row gets the same bits either way.
// Bound: the scaling of the sums, two vector operations for every 32 columns of an output.
#pragma once

#include "quant_decode.h"
#include "tiles.h"

namespace ashlar::cpu::ASHLAR_CPU_LEVEL {

static_assert(kGemmTiles == 2 && kQ8Offset == 128);  // two tiles at once, of unsigned codes
inline constexpr int kTileXRows = 16;
inline constexpr int kBlocksSummed = 4;  // whose sums are kept at a time: 8 or 16 KiB

// By block, half block, weight tile, row of x and weight row.
template <class U>
struct TileSums {
  static constexpr int kParts = U::kHalves ? 2 : 1;  // of a block that have scales of their own
  alignas(64) int32_t at[kBlocksSummed][kParts][kGemmTiles][kTileXRows][kTileRows];
};

enum : int { kSum0, kSum1, kX, kCodes0, kCodes1 };

template <class U>
constexpr TileConfig QuantTileConfig() {
  constexpr int kColumns = kBlockColumns / TileSums<U>::kParts;
  TileConfig config;
  config.Set(kSum0, kTileXRows, kTileBytes);
  config.Set(kSum1, kTileXRows, kTileBytes);
  config.Set(kX, kTileXRows, kColumns);
  config.Set(kCodes0, kColumns / 4, kTileBytes);
  config.Set(kCodes1, kColumns / 4, kTileBytes);
  return config;
}

// One block, or half of one.
ASHLAR_INLINE void SumTiles(const int8_t* x, int64_t x_stride, const uint8_t* codes0,
                            const uint8_t* codes1, int32_t to[kGemmTiles][kTileXRows][kTileRows]) {
  TileLoad<kX>(x, x_stride);
  TileLoad<kCodes0>(codes0, kTileBytes);
  TileLoad<kCodes1>(codes1, kTileBytes);
  TileZero<kSum0>();
  TileZero<kSum1>();
  TileDotBytes<kSum0, kX, kCodes0>();
  TileDotBytes<kSum1, kX, kCodes1>();
  TileStore<kSum0>(to[0], kTileBytes);
  TileStore<kSum1>(to[1], kTileBytes);
}

// acc += the sums of one row of x, number r of its 16, over blocks [block, block + blocks), the
// first of which is the first decoded one plus `decoded`.
template <class U>
ASHLAR_INLINE void ScaleSums(const TileSums<U>& sums, int r, XBlocks x, const Decoded& d,
                             int64_t decoded, int64_t blocks, float* acc) {
  constexpr int kParts = TileSums<U>::kParts;
  F32x16 total[1][kGemmTiles] = {{Load(acc), Load(acc + kTileRows)}};
  for (int64_t b = 0; b < blocks; ++b) {
    BlockScales s[kGemmTiles];
    for (int t = 0; t < kGemmTiles; ++t) s[t] = U::Scales((const uint8_t*)d.scales[t], decoded + b);
    for (int part = 0; part < kParts; ++part) {
      const I32x16 start = Set1I(U::kStart ? x.start[b * kParts + part] : 0);
      I32x16 dot[1][kGemmTiles];
      F32x16 scales[kGemmTiles];
      for (int t = 0; t < kGemmTiles; ++t) {
        dot[0][t] = AddI(start, LoadI(sums.at[b][part][t][r]));
        scales[t] = part + 1 < kParts ? s[t].low : s[t].high;
      }
      AddScaled<U, 1, kGemmTiles>(dot, scales, x, b, total);
    }
    if constexpr (U::kMinimum) {
      const F32x16 sum = Set1(x.scaled_sum[b]);
      for (int t = 0; t < kGemmTiles; ++t) total[0][t] = Fma(s[t].minimum, sum, total[0][t]);
    }
  }
  for (int t = 0; t < kGemmTiles; ++t) Store(acc + t * kTileRows, total[0][t]);
}

// 16 rows of x from `row` on, which is number r of those in d.
template <class U>
ASHLAR_INLINE void TileRows(const QuantMatmul& a, int64_t row, int64_t r, int64_t block,
                            int64_t blocks, Decoded& d) {
  constexpr int kParts = TileSums<U>::kParts, kColumns = kBlockColumns / kParts;
  TileSums<U> sums;
  if (block == 0) memset(d.acc[r], 0, kTileXRows * sizeof d.acc[0]);
  for (int64_t b = 0; b < blocks; b += kBlocksSummed) {
    const int64_t n = blocks - b < kBlocksSummed ? blocks - b : kBlocksSummed;
    for (int64_t i = 0; i < n * kParts; ++i) {
      const int64_t column = (b * kParts + i) * kColumns;  // of those decoded
      SumTiles(a.x.codes + row * a.x.k + block * kBlockColumns + column, a.x.k,
               d.codes[0] + column * kTileRows, d.codes[1] + column * kTileRows,
               sums.at[i / kParts][i % kParts]);
    }
    for (int i = 0; i < kTileXRows; ++i)
      ScaleSums<U>(sums, i, RowsFrom(a, U::kHalves, row + i, block + b), d, b, n, d.acc[r + i]);
  }
}

// As many of the rows [row, row + rows) as fill tiles; returns how many.
template <class U>
static __attribute__((noinline)) int64_t TileBlocks(const QuantMatmul& a, int64_t row, int64_t rows,
                                                    int64_t block, int64_t blocks, Decoded& d,
                                                    Ahead& ahead) {
  if (rows < kTileXRows) return 0;
  static constexpr TileConfig kConfig = QuantTileConfig<U>();
  const TileScope scope(kConfig);
  int64_t r = 0;
  for (; r + kTileXRows <= rows; r += kTileXRows) {
    ahead.FetchFor(kTileXRows);
    TileRows<U>(a, row + r, r, block, blocks, d);
  }
  return r;
}

}  // namespace ashlar::cpu::ASHLAR_CPU_LEVEL
