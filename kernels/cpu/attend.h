// Attention of a few query rows over a run of keys, 32 keys at a time at absolute positions, with
// the softmax kept as running maximum, sum and unnormalised output. Keys are turned once for all
// rows so that 16 of them fill a register; values are widened once.
// A row's result depends on its own keys only: steps over keys that it does not see leave its state
// as it was, bit for bit. Bound: bytes of K and V for few rows, fused multiply-adds for many.
#pragma once

#include "kernels.h"
#include "simd.h"

namespace ashlar::cpu::ASHLAR_CPU_LEVEL {

inline constexpr int kKeys = kAttentionKeys;
static_assert(kKeys == 32);

ASHLAR_INLINE F32x16 LoadElements(const char* p, ashlar_dtype dtype, int64_t index) {
  if (dtype == ASHLAR_F16) return LoadF16(p + 2 * index);
  if (dtype == ASHLAR_BF16) return LoadBf16(p + 2 * index);
  return Load((const float*)(p + 4 * index));
}

// Keys [start, start + 16): K to turned [head_dim][32] at column `half`, V to values
// [16][head_dim_v]. Keys that no row sees are zeros. start and block_tokens are multiples of 16:
// one block holds all.
template <ashlar_dtype kType>
static void LoadKeys(const AttentionPart& a, int32_t start, float* turned, float* values) {
  const int32_t end = a.highest < a.key_end ? a.highest : a.key_end;
  const int begin_lane = a.lowest > start ? a.lowest - start : 0;
  const int end_lane = end - start < 16 ? end - start : 16;
  if (begin_lane >= end_lane) {
    for (int i = 0; i < a.head_dim; ++i) Store(turned + i * kKeys, Set1(0.0f));
    memset(values, 0, sizeof(float) * 16 * a.head_dim_v);
    return;
  }
  const char* first = a.base + a.block_table[start / a.block_tokens] * a.block_stride +
                      start % a.block_tokens * a.token_stride;
  for (int i = 0; i < a.head_dim; i += 16) {
    F32x16 rows[16];
    for (int t = 0; t < 16; ++t)
      rows[t] = t >= begin_lane && t < end_lane ? LoadElements(first + t * a.token_stride, kType, i)
                                                : Set1(0.0f);
    Transpose(rows);
    for (int t = 0; t < 16; ++t) Store(turned + (i + t) * kKeys, rows[t]);
  }
  for (int t = 0; t < 16; ++t) {
    float* to = values + t * a.head_dim_v;
    const bool seen = t >= begin_lane && t < end_lane;
    const char* from = first + t * a.token_stride;
    for (int i = 0; i < a.head_dim_v; i += 16)
      Store(to + i, seen ? LoadElements(from, kType, a.head_dim + i) : Set1(0.0f));
  }
}

template <int kRows>
ASHLAR_INLINE void Scores(const AttentionPart& a, int row, const float* turned, float* scores) {
  F32x16 acc[kRows][2];
  for (int r = 0; r < kRows; ++r) acc[r][0] = acc[r][1] = Set1(0.0f);
  const float* q = a.q + row * a.head_dim;
  for (int i = 0; i < a.head_dim; ++i) {
    const F32x16 k0 = Load(turned + i * kKeys), k1 = Load(turned + i * kKeys + 16);
    for (int r = 0; r < kRows; ++r) {
      const F32x16 qi = Set1(q[r * a.head_dim + i]);
      acc[r][0] = Fma(qi, k0, acc[r][0]);
      acc[r][1] = Fma(qi, k1, acc[r][1]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    Store(scores + (row + r) * kKeys, acc[r][0]);
    Store(scores + (row + r) * kKeys + 16, acc[r][1]);
  }
}

// Scores of one row to weights e^(score - peak); earlier output and sum are scaled to the new peak.
ASHLAR_INLINE void Soften(const AttentionPart& a, int row, int32_t start, float* scores) {
  const int begin = a.first[row] - start, end = a.last[row] - start;
  F32x16 s0 = Load(scores), s1 = Load(scores + 16);
  if (begin > 0 || end < kKeys) {
    s0 = KeepLanes(s0, begin, end);
    s1 = KeepLanes(s1, begin - 16, end - 16);
  }
  const float most = ReduceMax(Max(s0, s1));
  const float old = a.peak[row];
  const float peak = most > old ? most : old;
  if (peak == -__builtin_inff()) {  // nothing visible yet
    Store(scores, Set1(0.0f));
    Store(scores + 16, Set1(0.0f));
    return;
  }
  const F32x16 p0 = Exp(Sub(s0, Set1(peak))), p1 = Exp(Sub(s1, Set1(peak)));
  Store(scores, p0);
  Store(scores + 16, p1);
  const float added = ReduceAdd(Add(p0, p1));
  if (peak != old) {
    alignas(64) float factor[16];
    Store(factor, Exp(Set1(old - peak)));
    a.sum[row] *= factor[0];
    float* out = a.out + row * a.head_dim_v;
    for (int i = 0; i < a.head_dim_v; i += 16) Store(out + i, Mul(Load(out + i), Set1(factor[0])));
    a.peak[row] = peak;
  }
  a.sum[row] += added;
}

template <int kRows, int kVectors>
ASHLAR_INLINE void AddValues(const AttentionPart& a, int row, int i, const float* scores,
                             const float* values) {
  float* out = a.out + row * a.head_dim_v + i;
  F32x16 acc[kRows][kVectors];
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v) acc[r][v] = Load(out + r * a.head_dim_v + 16 * v);
  for (int t = 0; t < kKeys; ++t) {
    F32x16 value[kVectors];
    for (int v = 0; v < kVectors; ++v) value[v] = Load(values + t * a.head_dim_v + i + 16 * v);
    for (int r = 0; r < kRows; ++r) {
      const F32x16 p = Set1(scores[(row + r) * kKeys + t]);
      for (int v = 0; v < kVectors; ++v) acc[r][v] = Fma(p, value[v], acc[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v) Store(out + r * a.head_dim_v + 16 * v, acc[r][v]);
}

template <int kRows>
ASHLAR_INLINE void AddAllValues(const AttentionPart& a, int row, const float* scores,
                                const float* values) {
  int i = 0;
  for (; i + 64 <= a.head_dim_v; i += 64) AddValues<kRows, 4>(a, row, i, scores, values);
  for (; i < a.head_dim_v; i += 16) AddValues<kRows, 1>(a, row, i, scores, values);
}

#ifdef __AVX512F__
inline constexpr int kScoreRows = 8, kValueRows = 4;
#else
inline constexpr int kScoreRows = 2, kValueRows = 2;
#endif

template <ashlar_dtype kType>
static void AttendKeys(const AttentionPart& a) {
  float* turned = a.scratch;
  float* values = turned + kKeys * a.head_dim;
  float* scores = values + kKeys * a.head_dim_v;
  for (int32_t start = a.key_begin; start < a.key_end; start += kKeys) {
    if (start + kKeys <= a.lowest || start >= a.highest) continue;
    LoadKeys<kType>(a, start, turned, values);
    LoadKeys<kType>(a, start + 16, turned + 16, values + 16 * a.head_dim_v);
    int row = 0;
    for (; row + kScoreRows <= a.rows; row += kScoreRows)
      Scores<kScoreRows>(a, row, turned, scores);
    for (; row + 2 <= a.rows; row += 2) Scores<2>(a, row, turned, scores);
    for (; row < a.rows; ++row) Scores<1>(a, row, turned, scores);
    for (row = 0; row < a.rows; ++row) Soften(a, row, start, scores + row * kKeys);
    row = 0;
    for (; row + kValueRows <= a.rows; row += kValueRows)
      AddAllValues<kValueRows>(a, row, scores, values);
    for (; row + 2 <= a.rows; row += 2) AddAllValues<2>(a, row, scores, values);
    for (; row < a.rows; ++row) AddAllValues<1>(a, row, scores, values);
  }
}

static void Attend(const AttentionPart& a) {
  for (int r = 0; r < a.rows; ++r) {
    a.peak[r] = -__builtin_inff();
    a.sum[r] = 0.0f;
  }
  memset(a.out, 0, sizeof(float) * a.rows * a.head_dim_v);
  if (a.dtype == ASHLAR_F16) return AttendKeys<ASHLAR_F16>(a);
  if (a.dtype == ASHLAR_BF16) return AttendKeys<ASHLAR_BF16>(a);
  return AttendKeys<ASHLAR_F32>(a);
}

}  // namespace ashlar::cpu::ASHLAR_CPU_LEVEL
