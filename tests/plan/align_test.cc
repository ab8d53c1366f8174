#include "plan/align.h"

#include <gtest/gtest.h>

namespace ashlar {
namespace {

// A gated delta layer of Qwen3-Next's size beside attention of 2 KiB a token.
constexpr int64_t kState = 1'097'728;

StateBlock Aligned(int tokens, int kernel_block, int64_t state = kState, int chunk = 0,
                   int64_t token_page = 2048) {
  return *AlignToStates({state, token_page, kernel_block, chunk}, tokens);
}

TEST(AlignToStates, GrowsUntilABlockTakesAsMuch) {  // BV-22
  StateBlock block = Aligned(16, 16);
  EXPECT_EQ(block.tokens, 544);
  EXPECT_EQ(block.padded_page, 1'114'112);
  EXPECT_NEAR(block.padded_percent, 1.4925, 1e-4);
}

TEST(AlignToStates, GrowsInStepsOfTheBlockOrTheKernel) {  // BV-23, BV-24
  EXPECT_EQ(Aligned(16, 16).tokens, 544);
  EXPECT_EQ(Aligned(128, 128).tokens, 640);
  EXPECT_NEAR(Aligned(128, 128).padded_percent, 19.40, 0.01);
  EXPECT_EQ(Aligned(16, 128).tokens, 640);
}

TEST(AlignToStates, GrowsWhatTheUserStates) {  // BV-25
  EXPECT_EQ(Aligned(64, 16).tokens, 576);
  EXPECT_NEAR(Aligned(64, 16).padded_percent, 7.46, 0.01);
}

TEST(AlignToStates, NeverShrinks) {  // BV-26
  EXPECT_EQ(Aligned(2048, 16).tokens, 2048);
  EXPECT_EQ(Aligned(2048, 16).padded_page, 4'194'304);
}

TEST(AlignToStates, OfHalvedAndOfLargerStates) {  // BV-27, BV-28
  EXPECT_EQ(Aligned(16, 16, 1'073'152).tokens, 528);
  EXPECT_NEAR(Aligned(16, 16, 1'073'152).padded_percent, 0.763, 1e-3);
  EXPECT_EQ(Aligned(16, 16, 1'603'584).tokens, 784);
  EXPECT_NEAR(Aligned(16, 16, 1'603'584).padded_percent, 0.128, 1e-3);
}

TEST(AlignToStates, KeepsWholeChunksWhenEveryBlockHasAState) {  // BV-29, in mode "all"
  EXPECT_EQ(Aligned(16, 16, kState, 256).tokens, 768);
  EXPECT_EQ(Aligned(16, 16, kState, 48).tokens, 576);
}

TEST(AlignToStates, LeavesAPageThatFitsExactly) {
  StateBlock block = Aligned(16, 16, 2048 * 32);
  EXPECT_EQ(block.tokens, 32);
  EXPECT_EQ(block.padded_page, 0);
}

TEST(AlignToStates, PadsAStateBesideLargerPages) {  // BK-07
  StateBlock block = Aligned(16, 16, 16'384);
  EXPECT_EQ(block.tokens, 16);
  EXPECT_EQ(block.padded_page, 32'768);
}

TEST(AlignToStates, RefusesWhatDoesNotFit) {
  EXPECT_FALSE(AlignToStates({int64_t{1} << 60, 1, 16, 0}, 16));
}

TEST(AlignToWideType, HoldsTheWidePageOfTheSmallestKernelBlock) {  // BV-31
  EXPECT_EQ(AlignToWideType(32, 32, 2048, 4096), 64);
  EXPECT_EQ(AlignToWideType(32, 32, 1152, 4096), 128);
  EXPECT_EQ(AlignToWideType(256, 32, 2048, 4096), 256);
  EXPECT_EQ(AlignToWideType(16, 16, 1, int64_t{1} << 60), std::nullopt);
}

}  // namespace
}  // namespace ashlar
