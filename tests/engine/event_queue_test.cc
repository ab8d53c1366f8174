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

// Choices that share a queue stay apart, and none waits for another to fall silent.
TEST(EventQueue, ChoicesTakeTurns) {
  EventQueue events;
  auto push = [&](int choice, int32_t id) {
    Event event;
    event.choice = choice;
    event.ids = {id};
    events.Push(event);
  };
  push(0, 1);
  push(7, 2);
  push(3, 3);
  push(7, 4);
  std::vector<std::pair<int, std::vector<int32_t>>> popped;
  for (int i = 0; i < 5; ++i) {
    push(0, 10 + i);  // never falls silent
    auto event = events.Pop(std::chrono::milliseconds(0));
    ASSERT_TRUE(event.has_value());
    popped.emplace_back(event->choice, event->ids);
  }
  EXPECT_EQ(popped,
            (decltype(popped){{0, {1, 10}}, {3, {3}}, {7, {2, 4}}, {0, {11, 12, 13}}, {0, {14}}}));
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
