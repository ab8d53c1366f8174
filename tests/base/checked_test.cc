#include "base/checked.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace ashlar {
namespace {

TEST(Checked, OverflowIsEmpty) {
  int64_t big = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(CheckedAdd<int64_t>(big, 1), std::nullopt);
  EXPECT_EQ(CheckedMul<int64_t>(big / 2, 3), std::nullopt);
  EXPECT_EQ(CheckedMul<int64_t>(1 << 20, 1 << 20), int64_t{1} << 40);
}

TEST(Checked, ProductRefusesNegativeExtents) {
  EXPECT_EQ(CheckedProduct(std::vector<int64_t>{4, -1}), std::nullopt);
  EXPECT_EQ(CheckedProduct(std::vector<int64_t>{}), 1);
  EXPECT_EQ(CheckedProduct(std::vector<int64_t>{3, 5}), 15);
}

}  // namespace
}  // namespace ashlar
