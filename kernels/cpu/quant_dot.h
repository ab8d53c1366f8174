// Products of packed weights (quant_format.h) with 8-bit activations. For each
// block of 32 columns:
//   acc += (d * dx) * (sum of code * x - offset * sum of x) + m * (dx * sum of
//   x)
// with the integer part exact, so the grouping of rows and tiles never changes
// a result. Bound: bytes of the weight up to about 8 rows of x, then integer
// products.
#pragma once

#include "kernels.h"
#include "simd.h"

namespace ashlar::cpu::ASHLAR_CPU_LEVEL {

// A core waits for memory unless far more lines are on their way than it can
// ask for by reading on.
inline constexpr int kFetchAhead = 8192;

struct BlockScales {
  F32x16 low, high;  // for columns 0..15 and 16..31; equal unless the format has
                     // half blocks
  F32x16 minimum;
};

// The packed format number kIndex.
template <int kIndex>
struct Packed {
  static constexpr QuantFormat kFormat = kQuantFormats[kIndex];
  static constexpr bool kSigned = kFormat.dtype == ASHLAR_Q8_0 && kQ8Offset == 0;
  static constexpr bool kMinimum = kFormat.minimum;
  static constexpr bool kStart = !kMinimum && !kSigned;
  static constexpr bool kHalves = kFormat.dtype == ASHLAR_Q6_K;
  static constexpr int kCodeBytes = kFormat.block_code_bytes();
  static constexpr int kFetchBytes =
      kCodeBytes + kFormat.group_scale_bytes() / kFormat.group_blocks;

  template <int kVector>
  ASHLAR_INLINE U8x64 Codes(const uint8_t* block) {
    if constexpr (kFormat.code_bits == 8) {
      return LoadBytes(block + 64 * kVector);
    } else {
      const U8x64 pair = LoadBytes(block + 64 * (kVector % 4));
      U8x64 low;
      if constexpr (kVector < 4)
        low = LowNibbles(pair);
      else
        low = HighNibbles(pair);
      if constexpr (kFormat.code_bits == 5)
        return WithHighBits<kVector, 1>(low, LoadBytes(block + 256));
      else if constexpr (kFormat.code_bits == 6)
        return WithHighBits<2 * (kVector % 4), 2>(low, LoadBytes(block + 256 + 64 * (kVector / 4)));
      else
        return low;
    }
  }

  ASHLAR_INLINE BlockScales Scales(const uint8_t* scales, int64_t block) {
    const uint8_t* group =
        scales + (uint64_t)block / kFormat.group_blocks * kFormat.group_scale_bytes();
    const F32x16 d = LoadF16(group);
    BlockScales r{d, d, d};
    if constexpr (kFormat.group_blocks == 1) {
      if constexpr (kMinimum) r.minimum = LoadF16(group + 32);
    } else if constexpr (kMinimum) {
      const uint8_t* own = group + 64 + 32 * (block % 8);
      r.low = r.high = Mul(d, LoadU8(own));
      r.minimum = Mul(LoadF16(group + 32), Sub(Set1(0.0f), LoadU8(own + 16)));
    } else {
      const uint8_t* own = group + 32 + 32 * (block % 8);
      r.low = Mul(d, LoadI8(own));
      r.high = Mul(d, LoadI8(own + 16));
    }
    return r;
  }
};

// Any format of some kind, unpacked into cache: 8-bit codes and f32 scales
// [block][3][16].
template <bool kSignedCodes, bool kWithMinimum, bool kHalfScales>
struct Unpacked {
  static constexpr bool kSigned = kSignedCodes;
  static constexpr bool kMinimum = kWithMinimum;
  static constexpr bool kHalves = kHalfScales;
  static constexpr bool kStart = !kMinimum && !kSigned;
  static constexpr int kCodeBytes = 512;
  static constexpr int kFetchBytes = 0;  // in cache already

  template <int kVector>
  ASHLAR_INLINE U8x64 Codes(const uint8_t* block) {
    return LoadBytes(block + 64 * kVector);
  }
  ASHLAR_INLINE BlockScales Scales(const uint8_t* scales, int64_t block) {
    const float* own = (const float*)scales + 48 * block;
    BlockScales r;
    r.low = r.high = Load(own);
    if constexpr (kHalves) r.high = Load(own + 16);
    r.minimum = r.low;
    if constexpr (kMinimum) r.minimum = Load(own + 32);
    return r;
  }
};

// Rows of x from some row and block on.
struct XBlocks {
  const int8_t* codes;
  const float* scale;
  const float* scaled_sum;
  const int32_t* start;
  int64_t k, blocks;  // of a whole row
};

template <class F, int kRows, int kTiles, int kVector>
ASHLAR_INLINE void DotVector(const uint8_t* const* codes, const int8_t* x, int64_t k,
                             I32x16 acc[kRows][kTiles]) {
  U8x64 w[kTiles];
  for (int t = 0; t < kTiles; ++t) w[t] = F::template Codes<kVector>(codes[t]);
  for (int r = 0; r < kRows; ++r) {
    const U8x64 four = Broadcast4(x + r * k + 4 * kVector);
    for (int t = 0; t < kTiles; ++t) acc[r][t] = Dot4<F::kSigned>(acc[r][t], w[t], four);
  }
}

template <class F, int kRows, int kTiles>
ASHLAR_INLINE void AddScaled(const I32x16 dot[kRows][kTiles], const F32x16 scales[kTiles],
                             const XBlocks& x, int64_t block, F32x16 acc[kRows][kTiles]) {
  for (int r = 0; r < kRows; ++r) {
    const F32x16 dx = Set1(x.scale[r * x.blocks + block]);
    for (int t = 0; t < kTiles; ++t)
      acc[r][t] = Fma(ToFloat(dot[r][t]), Mul(scales[t], dx), acc[r][t]);
  }
}

template <class F, int kRows, int kTiles>
ASHLAR_INLINE void Begin(const XBlocks& x, int64_t at, int per_block, I32x16 dot[kRows][kTiles]) {
  for (int r = 0; r < kRows; ++r) {
    const I32x16 start = Set1I(F::kStart ? x.start[r * x.blocks * per_block + at] : 0);
    for (int t = 0; t < kTiles; ++t) dot[r][t] = start;
  }
}

// acc += tiles x rows over blocks [0, blocks).
template <class F, int kRows, int kTiles>
ASHLAR_INLINE void DotBlocks(const uint8_t* const tile_codes[kTiles],
                             const uint8_t* const tile_scales[kTiles], int64_t blocks,
                             const XBlocks& x, F32x16 acc[kRows][kTiles]) {
  const uint8_t* codes[kTiles];
  for (int t = 0; t < kTiles; ++t) codes[t] = tile_codes[t];
  const int8_t* xc = x.codes;
  const uint8_t* ahead = tile_scales[0] + kFetchAhead;
  for (int64_t block = 0; block < blocks; ++block) {
    for (int line = 0; line < F::kFetchBytes; line += 64) __builtin_prefetch(ahead + line);
    ahead += F::kFetchBytes;
    if constexpr (F::kFetchBytes == 0) {  // rows of the next call
      for (int r = 0; r < kRows; ++r) __builtin_prefetch(xc + (kRows + r) * x.k);
    }
    F32x16 low[kTiles], high[kTiles], minimum[kTiles];
    for (int t = 0; t < kTiles; ++t) {
      const BlockScales s = F::Scales(tile_scales[t], block);
      low[t] = s.low;
      high[t] = s.high;
      minimum[t] = s.minimum;
    }
    constexpr int kStarts = F::kHalves ? 2 : 1;
    I32x16 dot[kRows][kTiles];
    Begin<F, kRows, kTiles>(x, kStarts * block, kStarts, dot);
    DotVector<F, kRows, kTiles, 0>(codes, xc, x.k, dot);
    DotVector<F, kRows, kTiles, 1>(codes, xc, x.k, dot);
    DotVector<F, kRows, kTiles, 2>(codes, xc, x.k, dot);
    DotVector<F, kRows, kTiles, 3>(codes, xc, x.k, dot);
    if constexpr (F::kHalves) {
      AddScaled<F, kRows, kTiles>(dot, low, x, block, acc);
      Begin<F, kRows, kTiles>(x, kStarts * block + 1, kStarts, dot);
    }
    DotVector<F, kRows, kTiles, 4>(codes, xc, x.k, dot);
    DotVector<F, kRows, kTiles, 5>(codes, xc, x.k, dot);
    DotVector<F, kRows, kTiles, 6>(codes, xc, x.k, dot);
    DotVector<F, kRows, kTiles, 7>(codes, xc, x.k, dot);
    AddScaled<F, kRows, kTiles>(dot, high, x, block, acc);
    if constexpr (F::kMinimum) {
      for (int r = 0; r < kRows; ++r) {
        const F32x16 sum = Set1(x.scaled_sum[r * x.blocks + block]);
        for (int t = 0; t < kTiles; ++t) acc[r][t] = Fma(minimum[t], sum, acc[r][t]);
      }
    }
    for (int t = 0; t < kTiles; ++t) codes[t] += F::kCodeBytes;
    xc += kBlockColumns;
  }
}

}  // namespace ashlar::cpu::ASHLAR_CPU_LEVEL
