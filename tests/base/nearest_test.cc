#include "base/nearest.h"

#include <gtest/gtest.h>

#include <vector>

namespace ashlar {
namespace {

const std::vector<std::string> kFields = {"blockSize", "dtype", "layout", "memory", "prefixCache"};

TEST(Nearest, FindsTheTypo) {
  EXPECT_EQ(Nearest("blocksize", kFields), "blockSize");
  EXPECT_EQ(Nearest("dytpe", kFields), "dtype");
}

TEST(Nearest, IsSilentWhenNothingIsNear) { EXPECT_EQ(Nearest("temperature", kFields), ""); }

TEST(OneOf, JoinsForMessages) {
  EXPECT_EQ(OneOf(std::vector<std::string>{"a"}), "a");
  EXPECT_EQ(OneOf(std::vector<std::string>{"a", "b", "c"}), "a, b or c");
}

}  // namespace
}  // namespace ashlar
