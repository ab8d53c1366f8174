// The vectors of simd.h on AVX2 with FMA and F16C: two registers each; AVX-VNNI where the level has
// it.
#pragma once

#include <immintrin.h>

namespace ashlar::cpu::ASHLAR_CPU_LEVEL {

struct F32x16 {
  __m256 a, b;
};
struct I32x16 {
  __m256i a, b;
};
using U8x64 = I32x16;

ASHLAR_INLINE F32x16 Set1(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
ASHLAR_INLINE F32x16 Load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
ASHLAR_INLINE void Store(float* p, F32x16 v) {
  _mm256_storeu_ps(p, v.a);
  _mm256_storeu_ps(p + 8, v.b);
}
ASHLAR_INLINE F32x16 Add(F32x16 x, F32x16 y) {
  return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)};
}
ASHLAR_INLINE F32x16 Sub(F32x16 x, F32x16 y) {
  return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)};
}
ASHLAR_INLINE F32x16 Mul(F32x16 x, F32x16 y) {
  return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)};
}
ASHLAR_INLINE F32x16 Div(F32x16 x, F32x16 y) {
  return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)};
}
ASHLAR_INLINE F32x16 Max(F32x16 x, F32x16 y) {
  return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)};
}
ASHLAR_INLINE F32x16 Min(F32x16 x, F32x16 y) {
  return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)};
}
ASHLAR_INLINE F32x16 Abs(F32x16 x) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, x.a), _mm256_andnot_ps(sign, x.b)};
}
ASHLAR_INLINE F32x16 Fma(F32x16 x, F32x16 y, F32x16 z) {
  return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
ASHLAR_INLINE F32x16 Round(F32x16 x) {
  constexpr int kMode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_round_ps(x.a, kMode), _mm256_round_ps(x.b, kMode)};
}
ASHLAR_INLINE __m256 PowerOf2(__m256 n) {
  return _mm256_castsi256_ps(
      _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23));
}
// n within [-126, 127].
ASHLAR_INLINE F32x16 ScaleByPowerOf2(F32x16 x, F32x16 n) {
  return {_mm256_mul_ps(x.a, PowerOf2(n.a)), _mm256_mul_ps(x.b, PowerOf2(n.b))};
}
ASHLAR_INLINE F32x16 ZeroWhereBelow(F32x16 x, float bound, F32x16 value) {
  const __m256 limit = _mm256_set1_ps(bound);
  return {_mm256_and_ps(_mm256_cmp_ps(x.a, limit, _CMP_NLT_UQ), value.a),
          _mm256_and_ps(_mm256_cmp_ps(x.b, limit, _CMP_NLT_UQ), value.b)};
}
// Lanes [begin, end) of v, the others -infinity.
ASHLAR_INLINE F32x16 KeepLanes(F32x16 v, int begin, int end) {
  const __m256i low = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i high = _mm256_add_epi32(low, _mm256_set1_epi32(8));
  const __m256i first = _mm256_set1_epi32(begin - 1), last = _mm256_set1_epi32(end);
  const __m256i in_low =
      _mm256_and_si256(_mm256_cmpgt_epi32(low, first), _mm256_cmpgt_epi32(last, low));
  const __m256i in_high =
      _mm256_and_si256(_mm256_cmpgt_epi32(high, first), _mm256_cmpgt_epi32(last, high));
  const __m256 none = _mm256_set1_ps(-__builtin_inff());
  return {_mm256_blendv_ps(none, v.a, _mm256_castsi256_ps(in_low)),
          _mm256_blendv_ps(none, v.b, _mm256_castsi256_ps(in_high))};
}
ASHLAR_INLINE float ReduceAdd(F32x16 v) {
  const __m256 h = _mm256_add_ps(v.a, v.b);
  const __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  const __m128 d = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(d, _mm_movehdup_ps(d)));
}
// out[i] = ReduceAdd(v[i]), in the same order of additions.
ASHLAR_INLINE void ReduceAdd4(const F32x16 v[4], float* out) {
  for (int i = 0; i < 4; ++i) out[i] = ReduceAdd(v[i]);
}
ASHLAR_INLINE float ReduceMax(F32x16 v) {
  const __m256 h = _mm256_max_ps(v.a, v.b);
  const __m128 q = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  const __m128 d = _mm_max_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_max_ss(d, _mm_movehdup_ps(d)));
}

ASHLAR_INLINE F32x16 LoadF16(const void* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p)),
          _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p + 1))};
}
ASHLAR_INLINE __m256 WidenBf16(__m128i v) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16));
}
ASHLAR_INLINE F32x16 LoadBf16(const void* p) {
  return {WidenBf16(_mm_loadu_si128((const __m128i*)p)),
          WidenBf16(_mm_loadu_si128((const __m128i*)p + 1))};
}
ASHLAR_INLINE F32x16 LoadU8(const uint8_t* p) {
  const __m128i v = _mm_loadu_si128((const __m128i*)p);
  return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(v)),
          _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(v, 8)))};
}
ASHLAR_INLINE F32x16 LoadI8(const uint8_t* p) {
  const __m128i v = _mm_loadu_si128((const __m128i*)p);
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(v)),
          _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(v, 8)))};
}
ASHLAR_INLINE void StoreF16(void* p, F32x16 v) {
  _mm_storeu_si128((__m128i*)p, _mm256_cvtps_ph(v.a, _MM_FROUND_TO_NEAREST_INT));
  _mm_storeu_si128((__m128i*)p + 1, _mm256_cvtps_ph(v.b, _MM_FROUND_TO_NEAREST_INT));
}
ASHLAR_INLINE __m128i RoundBf16(__m256 v) {
  const __m256i bits = _mm256_castps_si256(v);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  const __m256i words = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}
// Round to nearest even; a NaN stays one.
ASHLAR_INLINE void StoreBf16(void* p, F32x16 v) {
  _mm_storeu_si128((__m128i*)p, RoundBf16(v.a));
  _mm_storeu_si128((__m128i*)p + 1, RoundBf16(v.b));
}

ASHLAR_INLINE F32x16 ToFloat(I32x16 v) {
  return {_mm256_cvtepi32_ps(v.a), _mm256_cvtepi32_ps(v.b)};
}
ASHLAR_INLINE I32x16 Set1I(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
ASHLAR_INLINE I32x16 LoadI(const int32_t* p) {
  return {_mm256_loadu_si256((const __m256i*)p), _mm256_loadu_si256((const __m256i*)p + 1)};
}
ASHLAR_INLINE I32x16 AddI(I32x16 v, I32x16 w) {
  return {_mm256_add_epi32(v.a, w.a), _mm256_add_epi32(v.b, w.b)};
}
ASHLAR_INLINE int32_t ReduceAddI(I32x16 v) {
  const __m256i h = _mm256_add_epi32(v.a, v.b);
  __m128i q = _mm_add_epi32(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
  q = _mm_add_epi32(q, _mm_shuffle_epi32(q, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(q, _mm_shuffle_epi32(q, 0xb1)));
}
// Rounds to nearest even and stores 16 bytes; lanes must fit. Returns them as integers.
ASHLAR_INLINE I32x16 StoreInt8(int8_t* p, F32x16 v) {
  const I32x16 n = {_mm256_cvtps_epi32(v.a), _mm256_cvtps_epi32(v.b)};
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(n.a, n.b), 0xd8);
  _mm_storeu_si128((__m128i*)p, _mm_packs_epi16(_mm256_castsi256_si128(words),
                                                _mm256_extracti128_si256(words, 1)));
  return n;
}

ASHLAR_INLINE U8x64 LoadBytes(const uint8_t* p) {
  return {_mm256_loadu_si256((const __m256i*)p), _mm256_loadu_si256((const __m256i*)p + 1)};
}
ASHLAR_INLINE void StoreBytes(uint8_t* p, U8x64 v) {
  _mm256_storeu_si256((__m256i*)p, v.a);
  _mm256_storeu_si256((__m256i*)p + 1, v.b);
}
ASHLAR_INLINE U8x64 LowNibbles(U8x64 v) {
  const __m256i mask = _mm256_set1_epi8(15);
  return {_mm256_and_si256(v.a, mask), _mm256_and_si256(v.b, mask)};
}
ASHLAR_INLINE U8x64 HighNibbles(U8x64 v) {
  const __m256i mask = _mm256_set1_epi8(15);
  return {_mm256_and_si256(_mm256_srli_epi16(v.a, 4), mask),
          _mm256_and_si256(_mm256_srli_epi16(v.b, 4), mask)};
}
template <int kFrom, int kWidth>
ASHLAR_INLINE __m256i HighBits(__m256i low, __m256i high) {
  __m256i moved;
  if constexpr (kFrom >= 4)
    moved = _mm256_srli_epi16(high, kFrom - 4);
  else
    moved = _mm256_slli_epi16(high, 4 - kFrom);
  return _mm256_or_si256(low, _mm256_and_si256(moved, _mm256_set1_epi8(((1 << kWidth) - 1) << 4)));
}
// low | (bits [kFrom, kFrom + kWidth) of each byte of high) << 4
template <int kFrom, int kWidth>
ASHLAR_INLINE U8x64 WithHighBits(U8x64 low, U8x64 high) {
  return {HighBits<kFrom, kWidth>(low.a, high.a), HighBits<kFrom, kWidth>(low.b, high.b)};
}
// Four bytes of x in every lane.
ASHLAR_INLINE U8x64 Broadcast4(const int8_t* x) {
  int32_t word;
  memcpy(&word, x, 4);
  return Set1I(word);
}

#ifdef __AVXVNNI__
inline constexpr int kQ8Offset = 128;
template <bool kSigned>
ASHLAR_INLINE I32x16 Dot4(I32x16 acc, U8x64 w, U8x64 x) {
  static_assert(!kSigned);
  return {_mm256_dpbusd_avx_epi32(acc.a, w.a, x.a), _mm256_dpbusd_avx_epi32(acc.b, w.b, x.b)};
}
#else
// The product of pairs saturates at 16 bits, so 8-bit weights stay signed and lend x their sign;
// |w| may be 128, which only the unsigned operand can hold.
inline constexpr int kQ8Offset = 0;
template <bool kSigned>
ASHLAR_INLINE __m256i Dot4Half(__m256i acc, __m256i w, __m256i x) {
  const __m256i pairs = kSigned ? _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w))
                                : _mm256_maddubs_epi16(w, x);
  return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
template <bool kSigned>
ASHLAR_INLINE I32x16 Dot4(I32x16 acc, U8x64 w, U8x64 x) {
  return {Dot4Half<kSigned>(acc.a, w.a, x.a), Dot4Half<kSigned>(acc.b, w.b, x.b)};
}
#endif

ASHLAR_INLINE void Transpose8(__m256 r[8]) {
  __m256 t[8];
  for (int i = 0; i < 4; ++i) {
    t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    r[4 * i] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0x44);
    r[4 * i + 1] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0xee);
    r[4 * i + 2] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0x44);
    r[4 * i + 3] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
    t[i + 4] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
  }
  for (int i = 0; i < 8; ++i) r[i] = t[i];
}
// rows[i] lane j <-> rows[j] lane i.
ASHLAR_INLINE void Transpose(F32x16 rows[16]) {
  __m256 q[8];
  F32x16 t[16];
  for (int i = 0; i < 8; ++i) q[i] = rows[i].a;
  Transpose8(q);
  for (int i = 0; i < 8; ++i) t[i].a = q[i];
  for (int i = 0; i < 8; ++i) q[i] = rows[i].b;
  Transpose8(q);
  for (int i = 0; i < 8; ++i) t[i + 8].a = q[i];
  for (int i = 0; i < 8; ++i) q[i] = rows[i + 8].a;
  Transpose8(q);
  for (int i = 0; i < 8; ++i) t[i].b = q[i];
  for (int i = 0; i < 8; ++i) q[i] = rows[i + 8].b;
  Transpose8(q);
  for (int i = 0; i < 8; ++i) t[i + 8].b = q[i];
  for (int i = 0; i < 16; ++i) rows[i] = t[i];
}

}  // namespace ashlar::cpu::ASHLAR_CPU_LEVEL
