#include "base/sha256.h"

#include <gtest/gtest.h>

namespace ashlar {
namespace {

// FIPS 180-2 example B.1.
TEST(Sha256, MatchesTheStandard) {
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace ashlar
