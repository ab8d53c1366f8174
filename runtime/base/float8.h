// float8_e4m3: a sign, four bits of exponent, three of fraction; a NaN and no infinity.
#pragma once

#include <cstdint>

namespace ashlar {

// The nearest, ties to even; beyond the range, 448, the largest. A NaN stays one.
uint8_t FloatToF8E4M3(float value);

}  // namespace ashlar
