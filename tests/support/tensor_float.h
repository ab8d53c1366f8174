// float16, bfloat16 and float8 by arithmetic, independent of any kernel's bit tricks. Slow.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "base/check.h"
#include "base/dtype.h"

namespace ashlar::testing {

// A binary floating format: exponent and fraction bits below the sign bit.
struct FloatFormat {
  int exponent_bits, fraction_bits;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};
inline constexpr FloatFormat kHalf{5, 10};
inline constexpr FloatFormat kBf16{8, 7};

inline float Decode(FloatFormat format, uint16_t bits) {
  const int exponent = bits >> format.fraction_bits & ((1 << format.exponent_bits) - 1);
  const int fraction = bits & ((1 << format.fraction_bits) - 1);
  double value;
  if (exponent == (1 << format.exponent_bits) - 1) {
    value = fraction == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {
    value = std::ldexp(fraction, 1 - format.bias() - format.fraction_bits);
  } else {
    value = std::ldexp(fraction + (1 << format.fraction_bits),
                       exponent - format.bias() - format.fraction_bits);
  }
  return static_cast<float>(bits & 0x8000 ? -value : value);
}

// Nearest, ties to even; overflow to infinity.
inline uint16_t Encode(FloatFormat format, float value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const int top = (1 << format.exponent_bits) - 1;
  const double magnitude = std::fabs(static_cast<double>(value));
  if (std::isnan(value)) return static_cast<uint16_t>(sign | top << format.fraction_bits | 1);
  if (magnitude == 0) return sign;
  int exponent = std::isinf(magnitude) ? top : std::ilogb(magnitude) + format.bias();
  if (exponent < 1) exponent = 1;  // subnormals share the least exponent
  if (exponent < top) {
    // nearbyint rounds ties to even; a carry moves into the exponent by itself.
    const int unit = exponent - format.bias() - format.fraction_bits;
    const auto steps = static_cast<int>(std::nearbyint(std::ldexp(magnitude, -unit)));
    const int code = steps + ((exponent - 1) << format.fraction_bits);
    if (code < top << format.fraction_bits) return static_cast<uint16_t>(sign | code);
  }
  return static_cast<uint16_t>(sign | top << format.fraction_bits);
}

// Four bits of exponent, three of fraction; the last code is the NaN, and there is no infinity.
inline float DecodeF8(uint8_t bits) {
  const int exponent = bits >> 3 & 15, fraction = bits & 7;
  double value = exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(fraction + 8, exponent - 10);
  if ((bits & 0x7f) == 0x7f) value = NAN;
  return static_cast<float>(bits & 0x80 ? -value : value);
}

// The nearest of all codes, ties to even; what is larger than all becomes the largest.
inline uint8_t EncodeF8(float value) {
  static const std::vector<double> values = [] {  // of the codes, which grow with them
    std::vector<double> all;
    for (uint8_t code = 0; code < 0x7f; ++code) all.push_back(double{DecodeF8(code)});
    return all;
  }();
  const uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return sign | 0x7f;
  const double magnitude = std::fabs(double{value});
  const auto above = std::lower_bound(values.begin(), values.end(), magnitude);
  auto code = static_cast<uint8_t>(above - values.begin());
  if (above == values.end()) return sign | (code - 1);
  if (code > 0) {
    const double to_below = magnitude - values[code - 1u], to_above = *above - magnitude;
    if (to_below < to_above || (to_below == to_above && code % 2 == 1)) --code;
  }
  return sign | code;
}

// The nearest value that `type` (float32, float16, bfloat16, float8_e4m3) holds.
inline float Rounded(DType type, float value) {
  if (type == DType::kF8E4M3) return DecodeF8(EncodeF8(value));
  if (type == DType::kF16) return Decode(kHalf, Encode(kHalf, value));
  if (type == DType::kBF16) return Decode(kBf16, Encode(kBf16, value));
  Check(type == DType::kF32, "Rounded takes float types");
  return value;
}

// Writes `value` as `type` at `at`.
inline void Store(DType type, float value, std::byte* at) {
  if (type == DType::kF32) {
    std::memcpy(at, &value, 4);
    return;
  }
  if (type == DType::kF8E4M3) {
    *at = std::byte{EncodeF8(value)};
    return;
  }
  const uint16_t bits = Encode(type == DType::kF16 ? kHalf : kBf16, value);
  std::memcpy(at, &bits, 2);
}

inline float Load(DType type, const std::byte* at) {
  if (type == DType::kF32) {
    float value;
    std::memcpy(&value, at, 4);
    return value;
  }
  if (type == DType::kF8E4M3) return DecodeF8(static_cast<uint8_t>(*at));
  uint16_t bits;
  std::memcpy(&bits, at, 2);
  return Decode(type == DType::kF16 ? kHalf : kBf16, bits);
}

}  // namespace ashlar::testing
