#include <gtest/gtest.h>

#include <thread>

#include "engine/request.h"

namespace ashlar {
namespace {

TEST(EventQueue, GivesNothingWhenNothingCame) {
  EventQueue events;
  EXPECT_FALSE(events.Pop(std::chrono::milliseconds(0)).has_value());
}

TEST(EventQueue, MergesWhatHasPiledUpInOrder) {
  EventQueue events;
  Event first;
  first.prompt_logprobs.resize(2);
  first.ids = {1};
  first.logprobs = {{1, -0.5f, {}}};
  first.cached_tokens = 16;
  events.Push(first);
  Event last;
  last.ids = {2};
  last.logprobs = {{2, -0.25f, {}}};
  last.finish = FinishReason::kStop;
  last.stop_id = 9;
  events.Push(last);
  Event merged = *events.Pop(std::chrono::milliseconds(0));
  EXPECT_EQ(merged.ids, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(merged.logprobs.size(), 2u);
  EXPECT_EQ(merged.logprobs[1].id, 2);
  EXPECT_EQ(merged.prompt_logprobs.size(), 2u);
  EXPECT_EQ(merged.cached_tokens, 16);
  EXPECT_EQ(merged.finish, FinishReason::kStop);
  EXPECT_EQ(merged.stop_id, 9);
  EXPECT_FALSE(events.Pop(std::chrono::milliseconds(0)).has_value());
}

TEST(EventQueue, WakesAWaitingThread) {
  EventQueue events;
  std::thread engine([&] {
    Event event;
    event.ids = {5};
    events.Push(event);
  });
  auto event = events.Pop(std::chrono::seconds(60));
  engine.join();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->ids, (std::vector<int32_t>{5}));
}

}  // namespace
}  // namespace ashlar
