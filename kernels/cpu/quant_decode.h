// Packed tiles decoded into cache, for many rows of x.
#pragma once

#include "quant_dot.h"

namespace ashlar::cpu::ASHLAR_CPU_LEVEL {

// Rows and tiles whose accumulators, one integer and one float, stay in
// registers.
#if defined(__AVX512F__) || defined(ASHLAR_CPU_TILES)
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

// Lines that are fetched while others are computed with.
struct Ahead {
  const uint8_t *next, *end;
  int64_t bytes_per_row;  // of x

  void FetchFor(int64_t rows) {
    const int64_t bytes = bytes_per_row * rows + 64;
    for (int64_t i = 0; i < bytes && next < end; i += 64, next += 64)
      __builtin_prefetch(next, 0, 2);
  }
};

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

}  // namespace ashlar::cpu::ASHLAR_CPU_LEVEL
