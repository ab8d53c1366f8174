#include "base/half.h"

#include <bit>
#include <cmath>

namespace ashlar {
namespace {

constexpr uint32_t kInfinity = 0x7f800000;

}  // namespace

float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const int exponent = (half >> 10) & 0x1f;
  const uint32_t mantissa = half & 0x3ff;
  if (exponent == 0) {  // zero and subnormals: mantissa * 2^-24
    float value = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -value : value;
  }
  const uint32_t wide = exponent == 0x1f ? 0xffu : static_cast<uint32_t>(exponent + 112);
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

float BFloat16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > kInfinity) return static_cast<uint16_t>(sign | 0x7e00);
  if (magnitude >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00);  // 65536 and more
  if (magnitude < 0x38800000u) {  // below 2^-14: in steps of 2^-24
    float steps = std::nearbyint(std::ldexp(std::bit_cast<float>(magnitude), 24));
    return static_cast<uint16_t>(sign | static_cast<uint32_t>(steps));
  }
  // A carry out of the fraction moves into the exponent, and at 65520 into infinity.
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

uint16_t FloatToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > kInfinity) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}

}  // namespace ashlar
