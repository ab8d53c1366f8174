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

// Where key `position` of the sequence lies. 16 keys from a multiple of 16 on lie in one block.
ASHLAR_INLINE const char* EntryOf(const AttentionPart& a, int32_t position) {
  return a.base + a.block_table[position / a.block_tokens] * a.block_stride +
         position % a.block_tokens * a.token_stride;
}

// Lanes of 16 keys at `from` that some row sees; the others are zeros.
struct SeenKeys {
  const char* from;
  int begin, end;
};
template <ashlar_dtype kType, bool kAll>
ASHLAR_INLINE F32x16 LoadSeen(const AttentionPart& a, const SeenKeys& keys, int t, int i) {
  if (!kAll && (t < keys.begin || t >= keys.end)) return Set1(0.0f);
  return LoadElements(keys.from + t * a.token_stride, kType, i);
}

// K to turned [head_dim][32], V to values [16][head_dim_v]; meanwhile fetches the 16 keys at
// `ahead`.
template <ashlar_dtype kType, bool kAll>
static __attribute__((noinline)) void TurnKeys(const AttentionPart& a, const SeenKeys& keys,
                                               const char* ahead, float* turned, float* values) {
  constexpr int kPerLine = kType == ASHLAR_F32 ? 16 : 32;  // values
  constexpr int kBytes = 64 / kPerLine;
  for (int i = 0; i < a.head_dim; i += 16) {
    if (ahead != nullptr && i % kPerLine == 0) {
      for (int t = 0; t < 16; ++t) __builtin_prefetch(ahead + t * a.token_stride + i * kBytes);
    }
    F32x16 rows[16];
    for (int t = 0; t < 16; ++t) rows[t] = LoadSeen<kType, kAll>(a, keys, t, i);
    Transpose(rows);
    for (int t = 0; t < 16; ++t) Store(turned + (i + t) * kKeys, rows[t]);
  }
  for (int t = 0; t < 16; ++t) {
    float* to = values + t * a.head_dim_v;
    for (int i = 0; i < a.head_dim_v; i += 16) {
      const int at = a.head_dim + i;
      if (ahead != nullptr && at % kPerLine == 0)
        __builtin_prefetch(ahead + t * a.token_stride + at * kBytes);
      Store(to + i, LoadSeen<kType, kAll>(a, keys, t, at));
    }
  }
}

// Keys [start, start + 16).
template <ashlar_dtype kType>
ASHLAR_INLINE void LoadKeys(const AttentionPart& a, int32_t start, float* turned, float* values) {
  const int32_t last = a.highest < a.key_end ? a.highest : a.key_end;
  const int begin = a.lowest > start ? a.lowest - start : 0;
  const int end = last - start < 16 ? last - start : 16;
  if (begin >= end) {
    for (int i = 0; i < a.head_dim; ++i) Store(turned + i * kKeys, Set1(0.0f));
    memset(values, 0, sizeof(float) * 16 * a.head_dim_v);
    return;
  }
  const int32_t next = start + kKeys;
  const char* ahead = next < a.highest ? EntryOf(a, next) : nullptr;
  const SeenKeys keys{EntryOf(a, start), begin, end};
  if (begin == 0 && end == 16)
    TurnKeys<kType, true>(a, keys, ahead, turned, values);
  else
    TurnKeys<kType, false>(a, keys, ahead, turned, values);
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
