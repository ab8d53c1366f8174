// x times weights of F32, F16 or BF16, read in place. Every output is one register of 16 partial
// sums over the columns in order, reduced once, so the grouping of rows never changes a result.
// Bound: bytes of the weight for few rows of x, fused multiply-adds for many.
#pragma once

#include "kernels.h"
#include "simd.h"

namespace ashlar::cpu::ASHLAR_CPU_LEVEL {

struct ReadF32 {
  static constexpr int kBytes = 4;
  ASHLAR_INLINE F32x16 At(const char* p) { return Load((const float*)p); }
};
struct ReadF16 {
  static constexpr int kBytes = 2;
  ASHLAR_INLINE F32x16 At(const char* p) { return LoadF16(p); }
};
struct ReadBf16 {
  static constexpr int kBytes = 2;
  ASHLAR_INLINE F32x16 At(const char* p) { return LoadBf16(p); }
};

#ifdef __AVX512F__
inline constexpr int kFloatRows = 4, kFloatColumns = 4;
#else
inline constexpr int kFloatRows = 2, kFloatColumns = 2;
#endif

// The first rows of x meet a weight still in memory: fetches the rows that follow, at the same
// columns. Later ones fetch what they are about to read, which costs nothing more.
template <int kColumns>
ASHLAR_INLINE void FetchAhead(const char* const w[kColumns], int64_t at) {
  for (int c = 0; c < kColumns; ++c) __builtin_prefetch(w[c] + at);
}

template <int kColumns>
ASHLAR_INLINE void StoreSums(const FloatMatmul& a, int64_t row, int64_t column,
                             const F32x16 acc[kColumns]) {
  float sums[kColumns];
  if constexpr (kColumns == 4)
    ReduceAdd4(acc, sums);
  else
    for (int c = 0; c < kColumns; ++c) sums[c] = ReduceAdd(acc[c]);
  float* out = a.out + row * a.out_stride + column;
  for (int c = 0; c < kColumns; ++c) out[c] = a.bias ? sums[c] + a.bias[column + c] : sums[c];
}

template <class R, int kRows, int kColumns>
ASHLAR_INLINE void FloatBlock(const FloatMatmul& a, int64_t row, int64_t column) {
  const char* w[kColumns];
  for (int c = 0; c < kColumns; ++c) w[c] = a.weight + (column + c) * a.weight_stride;
  const float* x = (const float*)a.x + row * a.x_stride;
  F32x16 acc[kRows][kColumns];
  for (int r = 0; r < kRows; ++r)
    for (int c = 0; c < kColumns; ++c) acc[r][c] = Set1(0.0f);
  const int64_t ahead = row == 0 ? kColumns * a.weight_stride : 0;
  int64_t k = 0;
  for (; k + 16 <= a.k; k += 16) {
    FetchAhead<kColumns>(w, ahead + k * R::kBytes);
    F32x16 wv[kColumns];
    for (int c = 0; c < kColumns; ++c) wv[c] = R::At(w[c] + k * R::kBytes);
    for (int r = 0; r < kRows; ++r) {
      const F32x16 xv = Load(x + r * a.x_stride + k);
      for (int c = 0; c < kColumns; ++c) acc[r][c] = Fma(wv[c], xv, acc[r][c]);
    }
  }
  if (k < a.k) {
    const int64_t left = a.k - k;
    for (int c = 0; c < kColumns; ++c) {
      char last[16 * R::kBytes] = {};
      memcpy(last, w[c] + k * R::kBytes, left * R::kBytes);
      const F32x16 wv = R::At(last);
      for (int r = 0; r < kRows; ++r)
        acc[r][c] = Fma(wv, LoadFirst(x + r * a.x_stride + k, left), acc[r][c]);
    }
  }
  for (int r = 0; r < kRows; ++r) StoreSums<kColumns>(a, row + r, column, acc[r]);
}

template <class R, int kRows>
static __attribute__((noinline)) void FloatRows(const FloatMatmul& a, int64_t row) {
  int64_t column = a.row_begin;
  for (; column + kFloatColumns <= a.row_end; column += kFloatColumns)
    FloatBlock<R, kRows, kFloatColumns>(a, row, column);
  for (; column < a.row_end; ++column) FloatBlock<R, kRows, 1>(a, row, column);
}

// Calls run(a) for 16 rows of the weight at a time: they stay in cache for all rows of x.
template <class Run>
ASHLAR_INLINE void ForWeightRows(FloatMatmul a, Run run) {
  const int64_t end = a.row_end;
  for (; a.row_begin < end; a.row_begin += 16) {
    a.row_end = a.row_begin + 16 < end ? a.row_begin + 16 : end;
    run(a);
  }
}

template <class R>
static void MatmulFloat(const FloatMatmul& all) {
  ForWeightRows(all, [](const FloatMatmul& a) {
    int64_t row = 0;
    for (; row + kFloatRows <= a.m; row += kFloatRows) FloatRows<R, kFloatRows>(a, row);
    for (; row < a.m; ++row) FloatRows<R, 1>(a, row);
  });
}

#ifdef __AVX512BF16__
template <int kRows, int kColumns>
ASHLAR_INLINE void Bf16Block(const FloatMatmul& a, int64_t row, int64_t column) {
  const char* w[kColumns];
  for (int c = 0; c < kColumns; ++c) w[c] = a.weight + (column + c) * a.weight_stride;
  const uint16_t* x = (const uint16_t*)a.x + row * a.x_stride;
  __m512 acc[kRows][kColumns];
  for (int r = 0; r < kRows; ++r)
    for (int c = 0; c < kColumns; ++c) acc[r][c] = _mm512_setzero_ps();
  const int64_t ahead = row == 0 ? kColumns * a.weight_stride : 0;
  int64_t k = 0;
  for (; k + 32 <= a.k; k += 32) {
    FetchAhead<kColumns>(w, ahead + k * 2);
    __m512i wv[kColumns];
    for (int c = 0; c < kColumns; ++c) wv[c] = _mm512_loadu_si512(w[c] + k * 2);
    for (int r = 0; r < kRows; ++r) {
      const __m512i xv = _mm512_loadu_si512(x + r * a.x_stride + k);
      for (int c = 0; c < kColumns; ++c)
        acc[r][c] = _mm512_dpbf16_ps(acc[r][c], (__m512bh)wv[c], (__m512bh)xv);
    }
  }
  if (k < a.k) {
    const __mmask32 left = (1u << (a.k - k)) - 1u;
    for (int c = 0; c < kColumns; ++c) {
      const __m512i wv = _mm512_maskz_loadu_epi16(left, w[c] + k * 2);
      for (int r = 0; r < kRows; ++r)
        acc[r][c] = _mm512_dpbf16_ps(acc[r][c], (__m512bh)wv,
                                     (__m512bh)_mm512_loadu_si512(x + r * a.x_stride + k));
    }
  }
  for (int r = 0; r < kRows; ++r) StoreSums<kColumns>(a, row + r, column, acc[r]);
}

template <int kRows>
static __attribute__((noinline)) void Bf16Rows(const FloatMatmul& a, int64_t row) {
  int64_t column = a.row_begin;
  for (; column + 4 <= a.row_end; column += 4) Bf16Block<kRows, 4>(a, row, column);
  for (; column < a.row_end; ++column) Bf16Block<kRows, 1>(a, row, column);
}

static void MatmulBf16Dot(const FloatMatmul& all) {
  ForWeightRows(all, [](const FloatMatmul& a) {
    int64_t row = 0;
    for (; row + 6 <= a.m; row += 6) Bf16Rows<6>(a, row);
    if (row + 4 <= a.m) Bf16Rows<4>(a, row), row += 4;
    if (row + 2 <= a.m) Bf16Rows<2>(a, row), row += 2;
    for (; row < a.m; ++row) Bf16Rows<1>(a, row);
  });
}
#endif

}  // namespace ashlar::cpu::ASHLAR_CPU_LEVEL
