#include "weights/floats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace ashlar {
namespace {

// IEEE 754 binary16 by its definition.
double Half(uint32_t bits) {
  double sign = (bits & 0x8000) != 0 ? -1 : 1;
  int exponent = static_cast<int>(bits >> 10 & 31);
  double fraction = (bits & 1023) / 1024.0;
  if (exponent == 31) return bits & 1023 ? std::nan("") : sign * INFINITY;
  return exponent == 0 ? sign * std::ldexp(fraction, -14)
                       : sign * std::ldexp(1 + fraction, exponent - 15);
}

TEST(HalfToFloat, IsExactForEveryBitPattern) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float value = HalfToFloat(static_cast<uint16_t>(bits));
    double expected = Half(bits);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value)) << bits;
    } else {
      EXPECT_EQ(value, expected) << bits;
      EXPECT_EQ(std::signbit(value), (bits & 0x8000) != 0) << bits;
    }
  }
}

TEST(ToFloats, ReadsEachFormatAtAnyAlignmentAndAddsTheOffset) {
  struct {
    DType dtype;
    std::vector<uint8_t> bytes;
  } rows[] = {
      {DType::kF32, {0, 0, 0x20, 0x40, 0, 0, 0x80, 0xbf}},  // 2.5, -1
      {DType::kF16, {0x00, 0x41, 0x00, 0xbc}},
      {DType::kBF16, {0x20, 0x40, 0x80, 0xbf}},
  };
  for (auto& row : rows) {
    row.bytes.insert(row.bytes.begin(), 0);
    std::vector<float> out(2);
    ToFloats(row.dtype, std::as_bytes(std::span(row.bytes)).subspan(1), 1, out);
    EXPECT_EQ(out, (std::vector<float>{3.5, 0})) << Info(row.dtype).name;
  }
}

}  // namespace
}  // namespace ashlar
