#include "half.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ashlar::cpu {
namespace {

TEST(Half, EveryF16SurvivesTheWayThroughFloat) {
  for (uint32_t h = 0; h < 0x10000; ++h) {
    const float f = FloatFromF16(static_cast<uint16_t>(h));
    const bool nan = (h & 0x7c00) == 0x7c00 && (h & 0x3ff) != 0;
    ASSERT_EQ(std::isnan(f), nan) << h;
    if (!nan) {
      ASSERT_EQ(F16FromFloat(f), h);
    }
  }
}

TEST(Half, F16RoundsToNearestEven) {
  EXPECT_EQ(F16FromFloat(1.0f + 0x1p-11f), 0x3c00);             // half way: to even
  EXPECT_EQ(F16FromFloat(1.0f + 3 * 0x1p-11f), 0x3c02);         // half way: to even
  EXPECT_EQ(F16FromFloat(1.0f + 0x1p-11f + 0x1p-20f), 0x3c01);  // just above
  EXPECT_EQ(F16FromFloat(65519.0f), 0x7bff);
  EXPECT_EQ(F16FromFloat(65520.0f), 0x7c00);
  EXPECT_EQ(F16FromFloat(-INFINITY), 0xfc00);
  EXPECT_EQ(F16FromFloat(0x1p-25f), 0);
  EXPECT_EQ(F16FromFloat(0x1.8p-25f), 1);
  EXPECT_TRUE(std::isnan(FloatFromF16(F16FromFloat(NAN))));
}

TEST(Half, Bf16RoundsToNearestEven) {
  EXPECT_EQ(Bf16FromFloat(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(Bf16FromFloat(1.0f + 3 * 0x1p-8f), 0x3f82);
  EXPECT_EQ(Bf16FromFloat(3.4e38f), 0x7f80);
  EXPECT_TRUE(std::isnan(FloatFromBf16(Bf16FromFloat(NAN))));
}

}  // namespace
}  // namespace ashlar::cpu
