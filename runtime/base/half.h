// The 16-bit floats, to f32 and back.
#pragma once

#include <cstdint>

namespace ashlar {

// Exact.
float HalfToFloat(uint16_t half);
float BFloat16ToFloat(uint16_t bits);

// The nearest, ties to even; beyond the range an infinity. A NaN stays one.
uint16_t FloatToHalf(float value);
uint16_t FloatToBFloat16(float value);

}  // namespace ashlar
