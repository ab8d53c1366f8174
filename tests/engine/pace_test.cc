#include "engine/pace.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ashlar {
namespace {

constexpr int64_t kLong = 65'536;

// A device whose step takes `decode` seconds for answers and `token` more for a prompt token.
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

TEST(Pace, BeginsWithALookAndThenCarefully) {
  Pace pace;
  EXPECT_EQ(pace.PromptTokens(32, 1, 0, kLong), 0);
  EXPECT_EQ(pace.PromptTokens(32, 1, 0, kLong), Pace::kFirstPromptTokens);  // not noted yet
  pace.Note({32, 0, 0}, 5e-3);
  EXPECT_EQ(pace.PromptTokens(32, 1, 0, kLong), Pace::kFirstPromptTokens);
}

TEST(Pace, ALongPromptAddsLessThanTheAnswersTake) {
  // In steps of 32 tokens, of which 13 were seen to add 400 * 20 us: 0.7 of what answers take is 5
  // of them, or 11.
  EXPECT_EQ(Learned(5e-3, 2e-5).PromptTokens(32, 1, 0, kLong), 5 * 32);
  EXPECT_EQ(Learned(10e-3, 2e-5).PromptTokens(32, 1, 0, kLong), 11 * 32);
}

TEST(Pace, AShortPromptMayEndAtOnce) {
  Pace pace = Learned(5e-3, 2e-5);
  EXPECT_EQ(pace.PromptTokens(32, 1, 0, 350), 350);  // 1.4 times what answers take
  EXPECT_EQ(pace.PromptTokens(32, 1, 0, 100), 160);  // and of the next prompt 0.7 times in all
  EXPECT_EQ(pace.PromptTokens(32, 1, 0, 700), 160);  // 2.7 times
}

// However dear answers are: one that takes more steps is a long one.
TEST(Pace, APromptOfSeveralStepsDoesNotEndAtOnce) {
  EXPECT_EQ(Learned(30e-3, 2e-5).PromptTokens(32, 1, 0, kLong), 34 * 32);
}

TEST(Pace, ALongContextMakesTokensDear) {
  EXPECT_EQ(Learned(10e-3, 2e-5, 1000).PromptTokens(32, 1, 1000, kLong), 160);
}

TEST(Pace, ManyWaitingPromptsGetMore) {
  Pace pace = Learned(5e-3, 2e-5);
  EXPECT_EQ(pace.PromptTokens(32, 17, 0, kLong), 26 * 32);  // 1.7 * (1 + 3 * 16 / 32) times
  EXPECT_GT(pace.PromptTokens(32, 999, 0, kLong), 2048);
}

TEST(Pace, ASlowDeviceStillGetsAnywhere) {
  EXPECT_EQ(Learned(10e-3, 5e-3).PromptTokens(4, 1, 0, kLong), Pace::kStep);
}

// Answers that come and are never seen alone would look ever slower, as if prompts were to blame.
TEST(Pace, LooksAtAnswersAgainWhenMoreRun) {
  Pace pace = Learned(5e-3, 2e-5);
  EXPECT_EQ(pace.PromptTokens(44, 1, 0, kLong), 160);
  EXPECT_EQ(pace.PromptTokens(45, 1, 0, kLong), 0);
  EXPECT_EQ(pace.PromptTokens(45, 1, 0, kLong), 160);  // once
  for (int i = 0; i < 20; ++i) pace.Note({64, 0, 0}, 10e-3);
  EXPECT_EQ(pace.PromptTokens(64, 1, 0, kLong), 352);
}

TEST(Pace, LooksAtAnswersAgainAfterAWhile) {
  Pace pace = Learned(5e-3, 2e-5);
  for (int i = 2; i < Pace::kLook; ++i) pace.Note({32, 128, 0}, 8e-3);
  EXPECT_GT(pace.PromptTokens(32, 1, 0, kLong), 0);
  pace.Note({32, 128, 0}, 8e-3);
  EXPECT_EQ(pace.PromptTokens(32, 1, 0, kLong), 0);
  EXPECT_GT(pace.PromptTokens(32, 1, 0, kLong), 0);
  for (int i = 0; i < Pace::kLook; ++i) pace.Note({32, 128, 0}, 8e-3);
  EXPECT_EQ(pace.PromptTokens(32, 1, 0, kLong), 0);  // the look was never noted
}

// A step that a pause of the machine made long, or a first time, is tried again.
TEST(Pace, OutliersDoNotStarvePrompts) {
  Pace pace = Learned(10e-3, 2e-5);
  EXPECT_GE(pace.PromptTokens(32, 1, 0, 350), 350);
  for (int i = 0; i < 3; ++i) pace.Note({32, 350, 0}, 1.0);
  EXPECT_GE(pace.PromptTokens(32, 1, 0, 350), 350);
  for (int i = 0; i < 3; ++i) pace.Note({32, 350, 0}, 1.0);
  EXPECT_LT(pace.PromptTokens(32, 1, 0, 350), 350);
  int steps = 0;
  for (int tokens = 0; tokens < 350; ++steps) {
    ASSERT_LT(steps, 4000);
    tokens = pace.PromptTokens(32, 1, 0, 350);
    pace.Note({32, tokens, 0}, 10e-3 + tokens * 2e-5);
    if (steps % 20 == 0) pace.Note({32, 0, 0}, 10e-3);
  }
}

// A size that was cheap long ago costs no less than a smaller one does now.
TEST(Pace, MoreTokensCostNoLess) {
  Pace pace = Learned(12.2e-3, 2e-5);
  EXPECT_EQ(pace.PromptTokens(32, 1, 0, kLong), 416);
  for (int i = 0; i < 20; ++i) pace.Note({32, 192, 0}, 21.2e-3);
  EXPECT_EQ(pace.PromptTokens(32, 1, 0, kLong), 160);
}

// Nor much more a token.
TEST(Pace, MoreTokensCostLittleMoreEach) {
  Pace pace = Learned(10e-3, 2e-5);
  EXPECT_EQ(pace.PromptTokens(32, 1, 0, kLong), 352);
  for (int i = 0; i < 20; ++i) pace.Note({32, 384, 0}, 12e-3);
  EXPECT_EQ(pace.PromptTokens(32, 1, 0, kLong), 864);  // 1.5 * 2 ms for each 384
}

// One that is sure, after many steps in time.
Pace Sure(Pace pace) {
  for (int i = 0; i < 50; ++i) pace.NoteSpare(true);
  return pace;
}

TEST(Pace, TheNextStepWaitsWhileTheDeviceIsBusy) {
  EXPECT_EQ(Sure(Pace()).Spare({32, 0, 0}, 0), 0);  // nothing is known
  const Pace pace = Sure(Learned(5e-3, 2e-5, 1000));
  EXPECT_NEAR(pace.Spare({32, 0, 0}, 0), 0.9 * 5e-3 - 0.5e-3, 1e-9);
  EXPECT_NEAR(pace.Spare({32, 0, 0}, 1e-3), 0.9 * 5e-3 - 1.5e-3, 1e-9);
  EXPECT_EQ(pace.Spare({32, 0, 0}, 3.95e-3), 0);  // too little
  EXPECT_EQ(pace.Spare({32, 0, 0}, 6e-3), 0);
  EXPECT_NEAR(pace.Spare({64, 0, 0}, 0), 0.9 * 5e-3 - 0.5e-3, 1e-9);
  EXPECT_NEAR(pace.Spare({16, 0, 0}, 0), 0.9 * 2.5e-3 - 0.5e-3, 1e-9);  // may take half
  EXPECT_NEAR(pace.Spare({32, 400, 0}, 0), 0.9 * 13e-3 - 0.5e-3, 1e-6);
  EXPECT_NEAR(pace.Spare({32, 400, 1000}, 0), 0.9 * 21e-3 - 0.5e-3, 1e-6);
  // Of sizes that were not seen: as a smaller one, or as answers alone.
  EXPECT_NEAR(pace.Spare({32, 2000, 0}, 0), 0.9 * 13e-3 - 0.5e-3, 1e-6);
  EXPECT_NEAR(pace.Spare({32, 100, 0}, 0), 0.9 * 5e-3 - 0.5e-3, 1e-9);
  EXPECT_EQ(pace.Spare({0, 400, 0}, 0), 0);  // a prompt alone is never noted
}

// Seconds from step to step of a device that takes `device` seconds beside a host that takes
// `host` to start the next one.
double Period(Pace& pace, double device, double host) {
  const StepWork work{32, 0, 0};
  const double spare = pace.Spare(work, 0), period = std::max(device, spare + host);
  const bool in_time = spare + host < device;
  if (spare > 0 || in_time) pace.NoteSpare(in_time);
  if (spare == 0 || in_time) pace.Note(work, period);
  return period;
}

TEST(Pace, WaitingCostsADeviceNoTimeHoweverSlowTheHostIs) {
  for (double device : {0.4e-3, 1.5e-3, 5e-3, 20e-3}) {
    for (double host : {0.05e-3, 0.4e-3, 0.8e-3, 1.2e-3, 3e-3}) {
      Pace pace;
      pace.Note({32, 0, 0}, 1.5 * device);  // the first time
      for (int i = 0; i < 50; ++i) Period(pace, device, host);
      double time = 0;
      for (int i = 0; i < 200; ++i) time += Period(pace, device, host);
      EXPECT_LT(time, 200 * 1.01 * std::max(device, host)) << device << " " << host;
    }
  }
}

TEST(Pace, WaitsAgainAfterStepsThatWereLate) {
  Pace pace = Sure(Learned(5e-3, 2e-5));
  for (int i = 0; i < 5; ++i) pace.NoteSpare(false);
  EXPECT_EQ(pace.Spare({32, 0, 0}, 0), 0);
  for (int i = 0; i < 100; ++i) Period(pace, 5e-3, 0.1e-3);
  EXPECT_NEAR(pace.Spare({32, 0, 0}, 0), 0.9 * 5e-3 - 0.5e-3, 1e-6);
}

TEST(Pace, OneLateStepIsForgottenInTen) {
  Pace pace = Sure(Learned(5e-3, 2e-5));
  pace.NoteSpare(false);
  EXPECT_LT(pace.Spare({32, 0, 0}, 0), 2e-3);
  for (int i = 0; i < 10; ++i) pace.NoteSpare(true);
  EXPECT_NEAR(pace.Spare({32, 0, 0}, 0), 0.9 * 5e-3 - 0.5e-3, 1e-6);
}

TEST(Pace, StepsThatBecomeShorterAreSoonKnown) {
  Pace pace = Sure(Pace());
  for (int i = 0; i < 100; ++i) Period(pace, 20e-3, 0.1e-3);
  EXPECT_GT(pace.Spare({32, 0, 0}, 0), 17e-3);
  double idle = 0;
  for (int i = 0; i < 100; ++i) idle += Period(pace, 5e-3, 0.1e-3) - 5e-3;
  EXPECT_LT(idle, 20e-3);
  EXPECT_GT(pace.Spare({32, 0, 0}, 0), 2e-3);
}

// What a large step costs is not forgotten while only small ones run.
TEST(Pace, ALongPromptAfterManyShortOnes) {
  Pace pace(30'000);
  const auto note = [&](int prompt) { pace.Note({32, prompt, 0}, 5e-3 + prompt * 2e-5); };
  for (int i = 0; i < 20; ++i) note(2048);
  for (int i = 0; i < 10'000; ++i) {
    note(128);
    if (i % 40 == 0) pace.Note({32, 0, 0}, 5e-3);
  }
  EXPECT_LE(pace.PromptTokens(32, 1, 0, kLong), 400);
}

// Products of few tokens are bound by the weights: more tokens cost next to nothing at first.
TEST(Pace, SettlesOnADeviceWithARoofline) {
  Pace pace(30'000);
  const auto seconds = [](int decodes, int prompt, int64_t context) {
    const double products = std::max(4.7e-3, (decodes + prompt) * 21e-6);
    return products + decodes * 35e-6 + prompt * static_cast<double>(context) * 0.7e-9;
  };
  int64_t context = 0;
  double slowest = 0;
  for (int step = 0; context < kLong; ++step) {
    ASSERT_LT(step, 1000);
    const int64_t left = kLong - context;
    const int prompt =
        static_cast<int>(std::min<int64_t>(pace.PromptTokens(32, 1, context, left), left));
    const double took = seconds(32, prompt, context);
    if (step > 50 && left > 2000) slowest = std::max(slowest, took);
    pace.Note({32, prompt, context}, took);
    context += prompt;
  }
  EXPECT_LT(slowest, 2 * seconds(32, 0, 0));
}

}  // namespace
}  // namespace ashlar
