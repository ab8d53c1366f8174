#include "engine/pace.h"

#include <gtest/gtest.h>

namespace ashlar {
namespace {

constexpr int64_t kLong = 65'536;

// A device whose step takes `decode` seconds for answers and `token` more for a prompt token, grown
// by its context.
Pace Learned(double decode, double token, double half_context = 1e9) {
  Pace pace(half_context);
  for (int i = 0; i < 50; ++i) {
    pace.Note({32, 0, 0}, decode);
    pace.Note({32, 400, 0}, decode + 400 * token);
  }
  return pace;
}

TEST(Pace, DoesNotLimitAPromptAlone) {
  EXPECT_GT(Learned(5e-3, 2e-5).PromptTokens(0, 1, 60'000, kLong), 1'000'000);
}

TEST(Pace, BeginsCarefully) {
  EXPECT_EQ(Pace().PromptTokens(32, 1, 0, kLong), Pace::kFirstPromptTokens);
}

TEST(Pace, ALongPromptAddsLessThanTheAnswersTake) {
  EXPECT_NEAR(Learned(5e-3, 2e-5).PromptTokens(32, 1, 0, kLong), 200, 2);
}

TEST(Pace, APromptMayEndAtOnce) {
  Pace pace = Learned(5e-3, 2e-5);
  EXPECT_NEAR(pace.PromptTokens(32, 1, 0, 512), 550, 5);
  EXPECT_NEAR(pace.PromptTokens(32, 1, 0, 600), 200, 2);  // not with this step
}

TEST(Pace, ALongContextMakesTokensDear) {
  Pace pace = Learned(5e-3, 2e-5, 1000);
  EXPECT_NEAR(pace.PromptTokens(32, 1, 1000, kLong), 100, 2);
}

TEST(Pace, ManyWaitingPromptsGetMore) {
  Pace pace = Learned(5e-3, 2e-5);
  EXPECT_NEAR(pace.PromptTokens(32, 9, 0, kLong), 450, 3);     // 1.8 + 4 * 8 / 32 = 3 times
  EXPECT_NEAR(pace.PromptTokens(32, 999, 0, kLong), 1750, 8);  // at most 8 times
}

TEST(Pace, ASlowDeviceStillGetsAnywhere) {
  EXPECT_EQ(Learned(10e-3, 5e-3).PromptTokens(4, 1, 0, kLong), Pace::kLeastPromptTokens);
}

TEST(Pace, FollowsAChange) {
  Pace pace = Learned(5e-3, 2e-5);
  for (int i = 0; i < 50; ++i) pace.Note({64, 0, 0}, 10e-3);
  for (int i = 0; i < 50; ++i) pace.Note({64, 400, 0}, 10e-3 + 400 * 2e-5);
  EXPECT_NEAR(pace.PromptTokens(64, 1, 0, kLong), 400, 3);
}

// A step that a pause of the machine made long says little: one in five is averaged away slowly.
TEST(Pace, OneOutlierDoesNotStarvePrompts) {
  Pace pace = Learned(5e-3, 2e-5);
  pace.Note({32, 400, 0}, 1.0);
  EXPECT_GE(pace.PromptTokens(32, 1, 0, kLong), Pace::kLeastPromptTokens);
  for (int i = 0; i < 40; ++i) pace.Note({32, 64, 0}, 5e-3 + 64 * 2e-5);
  EXPECT_NEAR(pace.PromptTokens(32, 1, 0, kLong), 200, 10);
}

}  // namespace
}  // namespace ashlar
