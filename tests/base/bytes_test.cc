#include "base/bytes.h"

#include <gtest/gtest.h>

namespace ashlar {
namespace {

TEST(Bytes, ReadsBinaryAndDecimalUnits) {
  EXPECT_EQ(ParseBytes("512"), 512);
  EXPECT_EQ(ParseBytes("64KiB"), 65536);
  EXPECT_EQ(ParseBytes("12GiB"), int64_t{12} << 30);
  EXPECT_EQ(ParseBytes("12GB"), 12'000'000'000);
}

TEST(Bytes, RefusesWhatIsNoAmount) {
  for (const char* text : {"", "GiB", "-1GiB", "1.5GiB", "1 GiB", "1gib", "99999999999TiB"}) {
    EXPECT_EQ(ParseBytes(text), std::nullopt) << text;
  }
}

TEST(Bytes, FormatsInTheLargestUnit) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatBytes(int64_t{2} << 30), "2 GiB");
}

}  // namespace
}  // namespace ashlar
