#include "base/float8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/tensor_float.h"

namespace ashlar {
namespace {

using testing::DecodeF8;

TEST(Float8, EveryValueComesBack) {
  for (uint32_t code = 0; code < 0x100; ++code) {
    if ((code & 0x7f) == 0x7f) continue;
    EXPECT_EQ(FloatToF8E4M3(DecodeF8(static_cast<uint8_t>(code))), code);
  }
  EXPECT_EQ(FloatToF8E4M3(NAN) & 0x7f, 0x7f);
}

TEST(Float8, RoundsToTheNearestAndTiesToEven) {
  // Between any two neighbours: just below, at and just above the middle.
  for (uint8_t code = 0; code < 0x7e; ++code) {
    const float low = DecodeF8(code), high = DecodeF8(code + 1), middle = (low + high) / 2;
    EXPECT_EQ(FloatToF8E4M3(std::nextafter(middle, 0.0f)), code);
    EXPECT_EQ(FloatToF8E4M3(middle), code + (code & 1));
    EXPECT_EQ(FloatToF8E4M3(-middle), 0x80 | (code + (code & 1)));
    EXPECT_EQ(FloatToF8E4M3(std::nextafter(middle, high)), code + 1);
  }
}

TEST(Float8, BeyondTheRangeIsTheLargest) {
  EXPECT_EQ(FloatToF8E4M3(449.0f), 0x7e);
  EXPECT_EQ(FloatToF8E4M3(-1e30f), 0xfe);
  EXPECT_EQ(FloatToF8E4M3(std::numeric_limits<float>::infinity()), 0x7e);
}

}  // namespace
}  // namespace ashlar
