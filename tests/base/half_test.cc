#include "base/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "support/tensor_float.h"

namespace ashlar {
namespace {

using testing::kBf16;
using testing::kHalf;

void ExpectSame(float a, float b, uint32_t bits) {
  if (std::isnan(a) && std::isnan(b)) return;
  EXPECT_EQ(std::bit_cast<uint32_t>(a), std::bit_cast<uint32_t>(b)) << bits;
}

TEST(Half, ToFloatIsExactForEveryBitPatternAndComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    uint16_t half = static_cast<uint16_t>(bits);
    float value = HalfToFloat(half), brain = BFloat16ToFloat(half);
    ExpectSame(value, testing::Decode(kHalf, half), bits);
    ExpectSame(brain, testing::Decode(kBf16, half), bits);
    EXPECT_TRUE(std::isnan(value) ? std::isnan(HalfToFloat(FloatToHalf(value)))
                                  : FloatToHalf(value) == half)
        << bits;
    EXPECT_TRUE(std::isnan(brain) ? std::isnan(BFloat16ToFloat(FloatToBFloat16(brain)))
                                  : FloatToBFloat16(brain) == half)
        << bits;
  }
}

TEST(Half, FromFloatRoundsToTheNearestAndTiesToEven) {
  // Between any two neighbours: just below, at and just above the middle.
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    float low = HalfToFloat(static_cast<uint16_t>(bits));
    float high = HalfToFloat(static_cast<uint16_t>(bits + 1));
    float middle = (low + high) / 2;  // exact in f32
    EXPECT_EQ(FloatToHalf(std::nextafter(middle, 0.0f)), bits);
    EXPECT_EQ(FloatToHalf(middle), bits + (bits & 1));
    EXPECT_EQ(FloatToHalf(-middle), 0x8000 | (bits + (bits & 1)));
    EXPECT_EQ(FloatToHalf(std::nextafter(middle, high)), bits + 1);
  }
  EXPECT_EQ(FloatToHalf(65519.0f), 0x7bff);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(FloatToHalf(std::numeric_limits<float>::max()), 0x7c00);
}

TEST(Half, FromFloatAgreesWithArithmeticOnAnyBits) {
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    uint32_t bits = static_cast<uint32_t>(random());
    float value = std::bit_cast<float>(bits);
    if (std::isnan(value)) continue;
    EXPECT_EQ(FloatToHalf(value), testing::Encode(kHalf, value)) << bits;
    EXPECT_EQ(FloatToBFloat16(value), testing::Encode(kBf16, value)) << bits;
  }
}

}  // namespace
}  // namespace ashlar
