// The vectors of simd.h as arrays, without intrinsics: any CPU.
#pragma once

#include <math.h>

#include "half.h"

namespace ashlar::cpu::ASHLAR_CPU_LEVEL {

struct F32x16 {
  float v[16];
};
struct I32x16 {
  int32_t v[16];
};
struct U8x64 {
  uint8_t v[64];
};

template <typename Op>
ASHLAR_INLINE F32x16 Lanes(Op op) {
  F32x16 r;
  for (int i = 0; i < 16; ++i) r.v[i] = op(i);
  return r;
}
template <typename Op>
ASHLAR_INLINE U8x64 ByteLanes(Op op) {
  U8x64 r;
  for (int i = 0; i < 64; ++i) r.v[i] = op(i);
  return r;
}

ASHLAR_INLINE F32x16 Set1(float x) {
  return Lanes([&](int) { return x; });
}
ASHLAR_INLINE F32x16 Load(const float* p) {
  F32x16 r;
  memcpy(r.v, p, sizeof r.v);
  return r;
}
ASHLAR_INLINE void Store(float* p, F32x16 x) { memcpy(p, x.v, sizeof x.v); }
ASHLAR_INLINE F32x16 Add(F32x16 x, F32x16 y) {
  return Lanes([&](int i) { return x.v[i] + y.v[i]; });
}
ASHLAR_INLINE F32x16 Sub(F32x16 x, F32x16 y) {
  return Lanes([&](int i) { return x.v[i] - y.v[i]; });
}
ASHLAR_INLINE F32x16 Mul(F32x16 x, F32x16 y) {
  return Lanes([&](int i) { return x.v[i] * y.v[i]; });
}
ASHLAR_INLINE F32x16 Div(F32x16 x, F32x16 y) {
  return Lanes([&](int i) { return x.v[i] / y.v[i]; });
}
ASHLAR_INLINE F32x16 Max(F32x16 x, F32x16 y) {
  return Lanes([&](int i) { return x.v[i] > y.v[i] ? x.v[i] : y.v[i]; });
}
ASHLAR_INLINE F32x16 Min(F32x16 x, F32x16 y) {
  return Lanes([&](int i) { return x.v[i] < y.v[i] ? x.v[i] : y.v[i]; });
}
ASHLAR_INLINE F32x16 Abs(F32x16 x) {
  return Lanes([&](int i) { return fabsf(x.v[i]); });
}
ASHLAR_INLINE F32x16 Fma(F32x16 x, F32x16 y, F32x16 z) {
  return Lanes([&](int i) { return x.v[i] * y.v[i] + z.v[i]; });
}
// Nearest even; |x| < 2^22.
ASHLAR_INLINE F32x16 Round(F32x16 x) {
  constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: the sum has no bits behind the point
  return Lanes([&](int i) { return (x.v[i] + kMagic) - kMagic; });
}
// n within [-126, 127].
ASHLAR_INLINE F32x16 ScaleByPowerOf2(F32x16 x, F32x16 n) {
  return Lanes(
      [&](int i) { return x.v[i] * FloatFromBits((uint32_t)((int32_t)n.v[i] + 127) << 23); });
}
ASHLAR_INLINE F32x16 ZeroWhereBelow(F32x16 x, float bound, F32x16 value) {
  return Lanes([&](int i) { return x.v[i] < bound ? 0.0f : value.v[i]; });
}
// Lanes [begin, end) of x, the others -infinity.
ASHLAR_INLINE F32x16 KeepLanes(F32x16 x, int begin, int end) {
  return Lanes([&](int i) { return i >= begin && i < end ? x.v[i] : -__builtin_inff(); });
}
ASHLAR_INLINE float ReduceAdd(F32x16 x) {
  for (int half = 8; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) x.v[i] += x.v[i + half];
  return x.v[0];
}
// out[i] = ReduceAdd(v[i]), in the same order of additions.
ASHLAR_INLINE void ReduceAdd4(const F32x16 v[4], float* out) {
  for (int i = 0; i < 4; ++i) out[i] = ReduceAdd(v[i]);
}
ASHLAR_INLINE float ReduceMax(F32x16 x) {
  float most = x.v[0];
  for (int i = 1; i < 16; ++i) most = x.v[i] > most ? x.v[i] : most;
  return most;
}

ASHLAR_INLINE uint16_t Half(const void* p, int i) {
  uint16_t h;
  memcpy(&h, (const char*)p + 2 * i, 2);
  return h;
}
ASHLAR_INLINE F32x16 LoadF16(const void* p) {
  return Lanes([&](int i) { return FloatFromF16(Half(p, i)); });
}
ASHLAR_INLINE F32x16 LoadBf16(const void* p) {
  return Lanes([&](int i) { return FloatFromBf16(Half(p, i)); });
}
ASHLAR_INLINE F32x16 LoadU8(const uint8_t* p) {
  return Lanes([&](int i) { return (float)p[i]; });
}
ASHLAR_INLINE F32x16 LoadI8(const uint8_t* p) {
  return Lanes([&](int i) { return (float)(int8_t)p[i]; });
}
ASHLAR_INLINE void StoreF16(void* p, F32x16 x) {
  uint16_t h[16];
  for (int i = 0; i < 16; ++i) h[i] = F16FromFloat(x.v[i]);
  memcpy(p, h, sizeof h);
}
ASHLAR_INLINE void StoreBf16(void* p, F32x16 x) {
  uint16_t h[16];
  for (int i = 0; i < 16; ++i) h[i] = Bf16FromFloat(x.v[i]);
  memcpy(p, h, sizeof h);
}

ASHLAR_INLINE F32x16 ToFloat(I32x16 x) {
  return Lanes([&](int i) { return (float)x.v[i]; });
}
ASHLAR_INLINE I32x16 Set1I(int32_t x) {
  I32x16 r;
  for (int i = 0; i < 16; ++i) r.v[i] = x;
  return r;
}
ASHLAR_INLINE I32x16 LoadI(const int32_t* p) {
  I32x16 r;
  memcpy(r.v, p, sizeof r.v);
  return r;
}
ASHLAR_INLINE I32x16 AddI(I32x16 x, I32x16 y) {
  for (int i = 0; i < 16; ++i) x.v[i] += y.v[i];
  return x;
}
ASHLAR_INLINE int32_t ReduceAddI(I32x16 x) {
  int32_t sum = 0;
  for (int i = 0; i < 16; ++i) sum += x.v[i];
  return sum;
}
// Rounds to nearest even and stores 16 bytes; lanes must fit. Returns them as integers.
ASHLAR_INLINE I32x16 StoreInt8(int8_t* p, F32x16 x) {
  const F32x16 rounded = Round(x);
  I32x16 r;
  for (int i = 0; i < 16; ++i) {
    r.v[i] = rounded.v[i] >= -128.0f && rounded.v[i] <= 127.0f ? (int32_t)rounded.v[i] : -128;
    p[i] = (int8_t)r.v[i];
  }
  return r;
}

ASHLAR_INLINE U8x64 LoadBytes(const uint8_t* p) {
  U8x64 r;
  memcpy(r.v, p, 64);
  return r;
}
ASHLAR_INLINE void StoreBytes(uint8_t* p, U8x64 x) { memcpy(p, x.v, 64); }
ASHLAR_INLINE U8x64 LowNibbles(U8x64 x) {
  return ByteLanes([&](int i) { return (uint8_t)(x.v[i] & 15); });
}
ASHLAR_INLINE U8x64 HighNibbles(U8x64 x) {
  return ByteLanes([&](int i) { return (uint8_t)(x.v[i] >> 4); });
}
// low | (bits [kFrom, kFrom + kWidth) of each byte of high) << 4
template <int kFrom, int kWidth>
ASHLAR_INLINE U8x64 WithHighBits(U8x64 low, U8x64 high) {
  return ByteLanes([&](int i) {
    return (uint8_t)(low.v[i] | ((high.v[i] >> kFrom) & ((1 << kWidth) - 1)) << 4);
  });
}
// Four bytes of x in every lane.
ASHLAR_INLINE U8x64 Broadcast4(const int8_t* x) {
  return ByteLanes([&](int i) { return (uint8_t)x[i & 3]; });
}

#ifdef ASHLAR_CPU_TILES
inline constexpr int kQ8Offset = 128;
#else
inline constexpr int kQ8Offset = 0;
#endif
template <bool kSigned>
ASHLAR_INLINE I32x16 Dot4(I32x16 acc, U8x64 w, U8x64 x) {
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 4; ++j) {
      const int32_t weight = kSigned ? (int32_t)(int8_t)w.v[4 * i + j] : (int32_t)w.v[4 * i + j];
      acc.v[i] += weight * (int8_t)x.v[4 * i + j];
    }
  return acc;
}

// rows[i] lane j <-> rows[j] lane i.
ASHLAR_INLINE void Transpose(F32x16 rows[16]) {
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < i; ++j) {
      const float t = rows[i].v[j];
      rows[i].v[j] = rows[j].v[i];
      rows[j].v[i] = t;
    }
}

}  // namespace ashlar::cpu::ASHLAR_CPU_LEVEL
