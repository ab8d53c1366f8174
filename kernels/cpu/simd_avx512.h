// The vectors of simd.h on AVX-512 (F, BW, DQ, VL); VNNI where the level has it.
#pragma once

#include <immintrin.h>

namespace ashlar::cpu::ASHLAR_CPU_LEVEL {

using F32x16 = __m512;
using I32x16 = __m512i;
using U8x64 = __m512i;

ASHLAR_INLINE F32x16 Set1(float x) { return _mm512_set1_ps(x); }
ASHLAR_INLINE F32x16 Load(const float* p) { return _mm512_loadu_ps(p); }
ASHLAR_INLINE void Store(float* p, F32x16 v) { _mm512_storeu_ps(p, v); }
ASHLAR_INLINE F32x16 Add(F32x16 a, F32x16 b) { return _mm512_add_ps(a, b); }
ASHLAR_INLINE F32x16 Sub(F32x16 a, F32x16 b) { return _mm512_sub_ps(a, b); }
ASHLAR_INLINE F32x16 Mul(F32x16 a, F32x16 b) { return _mm512_mul_ps(a, b); }
ASHLAR_INLINE F32x16 Div(F32x16 a, F32x16 b) { return _mm512_div_ps(a, b); }
ASHLAR_INLINE F32x16 Max(F32x16 a, F32x16 b) { return _mm512_max_ps(a, b); }
ASHLAR_INLINE F32x16 Min(F32x16 a, F32x16 b) { return _mm512_min_ps(a, b); }
ASHLAR_INLINE F32x16 Abs(F32x16 a) { return _mm512_abs_ps(a); }
ASHLAR_INLINE F32x16 Fma(F32x16 a, F32x16 b, F32x16 c) { return _mm512_fmadd_ps(a, b, c); }
ASHLAR_INLINE F32x16 Round(F32x16 a) {
  return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
ASHLAR_INLINE F32x16 ScaleByPowerOf2(F32x16 a, F32x16 n) { return _mm512_scalef_ps(a, n); }
ASHLAR_INLINE F32x16 ZeroWhereBelow(F32x16 x, float bound, F32x16 value) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, Set1(bound), _CMP_NLT_UQ), value);
}
// Lanes [begin, end) of v, the others -infinity.
ASHLAR_INLINE F32x16 KeepLanes(F32x16 v, int begin, int end) {
  const uint32_t below_end = end >= 16 ? 0xffffu : (1u << (end < 0 ? 0 : end)) - 1u;
  const uint32_t below_begin = begin >= 16 ? 0xffffu : (1u << (begin < 0 ? 0 : begin)) - 1u;
  return _mm512_mask_mov_ps(Set1(-__builtin_inff()), (__mmask16)(below_end & ~below_begin), v);
}
ASHLAR_INLINE float ReduceAdd(F32x16 v) {
  const __m256 h = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  const __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  const __m128 d = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(d, _mm_movehdup_ps(d)));
}
// out[i] = ReduceAdd(v[i]), in the same order of additions.
ASHLAR_INLINE void ReduceAdd4(const F32x16 v[4], float* out) {
  const F32x16 a =
      Add(_mm512_shuffle_f32x4(v[0], v[1], 0x44), _mm512_shuffle_f32x4(v[0], v[1], 0xee));
  const F32x16 b =
      Add(_mm512_shuffle_f32x4(v[2], v[3], 0x44), _mm512_shuffle_f32x4(v[2], v[3], 0xee));
  F32x16 q = Add(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
  q = Add(q, _mm512_permute_ps(q, 0xee));
  q = Add(q, _mm512_permute_ps(q, 0x55));
  const __m512i firsts = _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  _mm_storeu_ps(out, _mm512_castps512_ps128(_mm512_permutexvar_ps(firsts, q)));
}
ASHLAR_INLINE float ReduceMax(F32x16 v) {
  const __m256 h = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  const __m128 q = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  const __m128 d = _mm_max_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_max_ss(d, _mm_movehdup_ps(d)));
}

ASHLAR_INLINE F32x16 LoadF16(const void* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p));
}
ASHLAR_INLINE F32x16 LoadBf16(const void* p) {
  return _mm512_castsi512_ps(
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p)), 16));
}
ASHLAR_INLINE F32x16 LoadU8(const uint8_t* p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)p)));
}
ASHLAR_INLINE F32x16 LoadI8(const uint8_t* p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i*)p)));
}
ASHLAR_INLINE void StoreF16(void* p, F32x16 v) {
  _mm256_storeu_si256((__m256i*)p, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}
// Round to nearest even; a NaN stays one.
ASHLAR_INLINE void StoreBf16(void* p, F32x16 v) {
  const __m512i bits = _mm512_castps_si512(v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
  rounded = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
  _mm256_storeu_si256((__m256i*)p, _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16)));
}

ASHLAR_INLINE F32x16 ToFloat(I32x16 v) { return _mm512_cvtepi32_ps(v); }
ASHLAR_INLINE I32x16 Set1I(int32_t x) { return _mm512_set1_epi32(x); }
ASHLAR_INLINE I32x16 LoadI(const int32_t* p) { return _mm512_loadu_si512(p); }
ASHLAR_INLINE I32x16 AddI(I32x16 a, I32x16 b) { return _mm512_add_epi32(a, b); }
ASHLAR_INLINE int32_t ReduceAddI(I32x16 v) { return _mm512_reduce_add_epi32(v); }
// Rounds to nearest even and stores 16 bytes; lanes must fit. Returns them as integers.
ASHLAR_INLINE I32x16 StoreInt8(int8_t* p, F32x16 v) {
  const __m512i n = _mm512_cvtps_epi32(v);
  _mm_storeu_si128((__m128i*)p, _mm512_cvtepi32_epi8(n));
  return n;
}

ASHLAR_INLINE U8x64 LoadBytes(const uint8_t* p) { return _mm512_loadu_si512(p); }
ASHLAR_INLINE void StoreBytes(uint8_t* p, U8x64 v) { _mm512_storeu_si512(p, v); }
ASHLAR_INLINE U8x64 LowNibbles(U8x64 v) { return _mm512_and_si512(v, _mm512_set1_epi8(15)); }
ASHLAR_INLINE U8x64 HighNibbles(U8x64 v) {
  return _mm512_and_si512(_mm512_srli_epi16(v, 4), _mm512_set1_epi8(15));
}
// low | (bits [kFrom, kFrom + kWidth) of each byte of high) << 4
template <int kFrom, int kWidth>
ASHLAR_INLINE U8x64 WithHighBits(U8x64 low, U8x64 high) {
  __m512i moved;
  if constexpr (kFrom >= 4)
    moved = _mm512_srli_epi16(high, kFrom - 4);
  else
    moved = _mm512_slli_epi16(high, 4 - kFrom);
  const __m512i mask = _mm512_set1_epi8(((1 << kWidth) - 1) << 4);
  return _mm512_ternarylogic_epi32(low, moved, mask, 0xf8);  // low | (moved & mask)
}
// Four bytes of x in every lane.
ASHLAR_INLINE U8x64 Broadcast4(const int8_t* x) {
  int32_t word;
  memcpy(&word, x, 4);
  return _mm512_set1_epi32(word);
}

#ifdef __AVX512VNNI__
inline constexpr int kQ8Offset = 128;
template <bool kSigned>
ASHLAR_INLINE I32x16 Dot4(I32x16 acc, U8x64 w, U8x64 x) {
  static_assert(!kSigned);
  return _mm512_dpbusd_epi32(acc, w, x);
}
#else
// The product of pairs saturates at 16 bits, so 8-bit weights stay signed and lend x their sign.
inline constexpr int kQ8Offset = 0;
template <bool kSigned>
ASHLAR_INLINE I32x16 Dot4(I32x16 acc, U8x64 w, U8x64 x) {
  __m512i pairs;
  if constexpr (kSigned) {
    // |w| may be 128, which only the unsigned operand can hold.
    const __m512i turned =
        _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w), _mm512_setzero_si512(), x);
    pairs = _mm512_maddubs_epi16(_mm512_abs_epi8(w), turned);
  } else {
    pairs = _mm512_maddubs_epi16(w, x);
  }
  return _mm512_add_epi32(acc, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}
#endif

// rows[i] lane j <-> rows[j] lane i.
ASHLAR_INLINE void Transpose(F32x16 rows[16]) {
  F32x16 t[16];
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_ps(rows[2 * i], rows[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_ps(rows[2 * i], rows[2 * i + 1]);
  }
  for (int i = 0; i < 4; ++i) {
    const __m512d a = _mm512_castps_pd(t[4 * i]), b = _mm512_castps_pd(t[4 * i + 1]);
    const __m512d c = _mm512_castps_pd(t[4 * i + 2]), d = _mm512_castps_pd(t[4 * i + 3]);
    rows[4 * i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
    rows[4 * i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
    rows[4 * i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
    rows[4 * i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
  }
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_f32x4(rows[i], rows[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_f32x4(rows[i], rows[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_f32x4(rows[i + 8], rows[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_f32x4(rows[i + 8], rows[i + 12], 0xdd);
  }
  for (int i = 0; i < 8; ++i) {
    rows[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
    rows[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
  }
}

}  // namespace ashlar::cpu::ASHLAR_CPU_LEVEL
