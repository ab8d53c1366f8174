#include "weights/floats.h"

#include <gtest/gtest.h>

#include <vector>

namespace ashlar {
namespace {

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
