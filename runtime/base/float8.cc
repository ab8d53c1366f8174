#include "base/float8.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ashlar {

uint8_t FloatToF8E4M3(float value) {
  const uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return sign | 0x7f;
  const float magnitude = std::min(std::fabs(value), 448.0f);
  if (magnitude < 0x1p-6f) {  // in steps of 2^-9
    return static_cast<uint8_t>(sign | static_cast<uint8_t>(std::nearbyint(magnitude * 0x1p9f)));
  }
  // A carry out of the fraction moves into the exponent.
  const uint32_t bits = std::bit_cast<uint32_t>(magnitude);
  const uint32_t rounded = bits + 0x7ffffu + ((bits >> 20) & 1);
  return static_cast<uint8_t>(sign | ((rounded - 0x3c000000u) >> 20));
}

}  // namespace ashlar
