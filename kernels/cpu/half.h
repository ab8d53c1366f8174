// fp16 and bf16 in plain arithmetic. Internal linkage: also included by files compiled for one
// instruction set.
#pragma once

#include <stdint.h>
#include <string.h>

namespace ashlar::cpu {

[[maybe_unused]] static inline float FloatFromBits(uint32_t bits) {
  float f;
  memcpy(&f, &bits, 4);
  return f;
}
[[maybe_unused]] static inline uint32_t BitsOfFloat(float f) {
  uint32_t bits;
  memcpy(&bits, &f, 4);
  return bits;
}
[[maybe_unused]] static inline float FloatFromF16(uint16_t h) {
  const uint32_t sign = (uint32_t)(h & 0x8000) << 16;
  const uint32_t magnitude = (uint32_t)(h & 0x7fff) << 13;
  if ((h & 0x7c00) == 0x7c00) return FloatFromBits(sign | 0x7f800000 | magnitude);
  // The exponents differ by 112; the product is exact, subnormals included.
  return FloatFromBits(sign | BitsOfFloat(FloatFromBits(magnitude) * 0x1p112f));
}
// Round to nearest even; overflow gives infinity, a NaN stays one.
[[maybe_unused]] static inline uint16_t F16FromFloat(float f) {
  const uint32_t bits = BitsOfFloat(f);
  const uint16_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;
  if (magnitude >= 0x477ff000) return sign | 0x7c00;
  if (magnitude < 0x38800000)  // subnormal: adding 0.5 leaves units of 2^-24 in the last place
    return sign | (uint16_t)(BitsOfFloat(FloatFromBits(magnitude) + 0.5f) - 0x3f000000);
  return sign | (uint16_t)((magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13);
}
[[maybe_unused]] static inline float FloatFromBf16(uint16_t h) {
  return FloatFromBits((uint32_t)h << 16);
}
[[maybe_unused]] static inline uint16_t Bf16FromFloat(float f) {
  const uint32_t bits = BitsOfFloat(f);
  if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)((bits | 0x400000) >> 16);
  return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

}  // namespace ashlar::cpu
