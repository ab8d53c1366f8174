#include "weights/floats.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.h"

namespace ashlar {

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

void ToFloats(DType dtype, std::span<const std::byte> bytes, float offset, std::span<float> out) {
  const size_t width = static_cast<size_t>(Info(dtype).bytes);
  Check(bytes.size() == width * out.size(), "as many values as the caller has room for");
  for (size_t i = 0; i < out.size(); ++i) {
    const std::byte* at = bytes.data() + i * width;
    if (dtype == DType::kF32) {
      std::memcpy(&out[i], at, sizeof(float));
    } else {
      uint16_t bits;
      std::memcpy(&bits, at, sizeof bits);
      Check(dtype == DType::kF16 || dtype == DType::kBF16, "a float format");
      out[i] = dtype == DType::kF16 ? HalfToFloat(bits) : BFloat16ToFloat(bits);
    }
    out[i] += offset;
  }
}

}  // namespace ashlar
