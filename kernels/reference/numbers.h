// Conversions between float32 and the narrower types, by bits, and the sum of products that every
// op uses.
#pragma once

#include <cstdint>
#include <cstring>

#include "ashlar_plugin.h"
#include "common/shapes.h"

namespace ashlar::reference {

inline float FromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline uint32_t ToBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(half & 0x7fffu) << 13;
  // Infinities and NaNs keep their exponent of all ones; the rest is rebased by an exact multiply,
  // which also makes subnormals right.
  if ((half & 0x7c00u) == 0x7c00u) return FromBits(sign | 0x7f800000u | magnitude);
  return FromBits(sign | ToBits(FromBits(magnitude) * 0x1p112f));
}

// Rounds to nearest, ties to even; overflow gives infinity.
inline uint16_t FloatToHalf(float value) {
  const uint32_t bits = ToBits(value);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {
    // Below 2^-14: adding 0.5 puts the unit of the last place at 2^-24, so the addition rounds.
    const uint32_t rounded = ToBits(FromBits(magnitude) + 0.5f) - ToBits(0.5f);
    return static_cast<uint16_t>(sign | rounded);
  }
  const uint32_t odd = magnitude >> 13 & 1u;
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

inline float Bf16ToFloat(uint16_t value) { return FromBits(static_cast<uint32_t>(value) << 16); }

// Rounds to nearest, ties to even.
inline uint16_t FloatToBf16(float value) {
  const uint32_t bits = ToBits(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

inline float F8ToFloat(uint8_t value) {
  const uint32_t sign = static_cast<uint32_t>(value & 0x80u) << 24;
  const uint32_t magnitude = value & 0x7fu;
  if (magnitude == 0x7fu) return FromBits(sign | 0x7fc00000u);
  return FromBits(sign | ToBits(FromBits(magnitude << 20) * 0x1p120f));
}

// Rounds to nearest, ties to even; values past the largest, 448, become the largest.
inline uint8_t FloatToF8(float value) {
  const uint32_t sign = ToBits(value) >> 24 & 0x80u;
  uint32_t magnitude = ToBits(value) & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint8_t>(sign | 0x7fu);
  if (magnitude > ToBits(448.0f)) magnitude = ToBits(448.0f);
  if (magnitude < ToBits(0x1p-6f)) {
    // The unit of the last place is 2^-9, as that of 2^14 is.
    const uint32_t rounded = ToBits(FromBits(magnitude) + 0x1p14f) - ToBits(0x1p14f);
    return static_cast<uint8_t>(sign | rounded);
  }
  const uint32_t odd = magnitude >> 20 & 1u;
  return static_cast<uint8_t>(sign | ((magnitude - 0x3c000000u + 0x7ffffu + odd) >> 20));
}

// Value i of an array of F32, F16, BF16 or F8_E4M3, aligned or not.
inline float LoadFloat(ashlar_dtype dtype, const void* array, int64_t i) {
  const char* at = static_cast<const char*>(array) + i * FloatBytes(dtype);
  if (dtype == ASHLAR_F32) {
    float value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  if (dtype == ASHLAR_F8_E4M3) return F8ToFloat(static_cast<uint8_t>(*at));
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return dtype == ASHLAR_F16 ? HalfToFloat(bits) : Bf16ToFloat(bits);
}

inline void StoreFloat(ashlar_dtype dtype, void* array, int64_t i, float value) {
  char* at = static_cast<char*>(array) + i * FloatBytes(dtype);
  if (dtype == ASHLAR_F32) {
    std::memcpy(at, &value, sizeof value);
    return;
  }
  if (dtype == ASHLAR_F8_E4M3) {
    *at = static_cast<char>(FloatToF8(value));
    return;
  }
  const uint16_t bits = dtype == ASHLAR_F16 ? FloatToHalf(value) : FloatToBf16(value);
  std::memcpy(at, &bits, sizeof bits);
}

// Sum of a[i] * b[i] in double, where each product is exact. Eight running sums, in this one
// order for every call, let the compiler use vector registers.
inline double Dot(const float* a, const float* b, int64_t n) {
  constexpr int kLanes = 8;
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      lanes[lane] += static_cast<double>(a[i + lane]) * static_cast<double>(b[i + lane]);
    }
  }
  double sum = 0;
  for (; i < n; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  for (double lane : lanes) sum += lane;
  return sum;
}

}  // namespace ashlar::reference
