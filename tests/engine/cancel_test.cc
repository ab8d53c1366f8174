#include <gtest/gtest.h>

#include <random>

#include "support/engine_client.h"
#include "support/toy_model_engine.h"

namespace ashlar {
namespace {

Request Long(int max_tokens = 400) {
  Request request;
  request.prompt = {1, 2, 3};
  request.max_tokens = max_tokens;
  request.ignore_eos = true;
  return request;
}

// AP-12, in steps and without a thread.
TEST(Cancel, EndsARunningRequestAtOnceAndGivesItsBlocksBack) {
  toy::ToyWorker toy;
  auto events = std::make_shared<EventQueue>();
  uint64_t id = toy.Accept(Long(), events);
  for (int step = 0; step < 5; ++step) ASSERT_TRUE(toy->Step().ok());
  ASSERT_LT(toy.stats().groups[0].free, toy.stats().groups[0].blocks);
  toy->Cancel(id);
  toy->Flush();
  Answer answer = Wait(*events);
  EXPECT_EQ(answer.finish, FinishReason::kCancelled);
  EXPECT_EQ(answer.ids.size(), 4u);  // the fifth step is still under way
  EngineStats stats = toy.stats();
  EXPECT_EQ(stats.running, 0);
  EXPECT_EQ(stats.groups[0].free, stats.groups[0].blocks);
  EXPECT_EQ(stats.finished[static_cast<size_t>(FinishReason::kCancelled)], 1);
}

TEST(Cancel, EndsAWaitingRequest) {
  Engine::Options options = toy::SmallOptions();
  options.max_sequences = 1;
  toy::ToyWorker toy({}, options);
  auto first = std::make_shared<EventQueue>(), second = std::make_shared<EventQueue>();
  uint64_t running = toy.Accept(Long(), first);
  uint64_t waiting = toy.Accept(Long(), second);
  ASSERT_TRUE(toy->Step().ok());
  ASSERT_EQ(toy.stats().waiting, 1);
  toy->Cancel(waiting);
  toy->Flush();
  EXPECT_EQ(Wait(*second).finish, FinishReason::kCancelled);
  EXPECT_EQ(toy.stats().waiting_tokens, 0);
  toy->Cancel(running);
}

TEST(Cancel, EndsAPreemptedRequest) {
  toy::Shape shape;
  shape.groups[0].block_tokens = 4;
  shape.groups[0].blocks = 8;
  shape.context_length = 30;
  toy::ToyWorker toy(shape);
  std::vector<std::shared_ptr<EventQueue>> events;
  std::vector<uint64_t> ids;
  for (int i = 0; i < 3; ++i) {
    events.push_back(std::make_shared<EventQueue>());
    ids.push_back(toy.Accept(Long(), events.back()));
  }
  while (toy.stats().preemptions == 0) ASSERT_TRUE(toy->Step().ok());
  for (uint64_t id : ids) toy->Cancel(id);
  toy->Flush();
  for (auto& queue : events) EXPECT_EQ(Wait(*queue).finish, FinishReason::kCancelled);
  EXPECT_EQ(toy.stats().groups[0].free, 8);
  ASSERT_TRUE(toy->Step().ok());  // takes in the step that was under way
  EXPECT_TRUE(toy->idle());
}

TEST(Cancel, UnknownAndEndedIdsAreNothing) {
  toy::ToyEngine engine;
  engine->Cancel(0);
  engine->Cancel(12345);
  Pending request = Submit(*engine, Long(2));
  Wait(*request.events);
  for (int i = 0; i < 100; ++i) engine->Cancel(request.id);
  EXPECT_EQ(Ask(*engine, Long(3)).ids.size(), 3u);
  EXPECT_EQ(engine->stats().finished[static_cast<size_t>(FinishReason::kCancelled)], 0);
}

// AP-12 through the thread: the gauge is back and the rest of the answer never came.
TEST(Cancel, StopsALongAnswer) {
  toy::ToyEngine engine;
  Pending request = Submit(*engine, Long());
  std::optional<Event> first = request.events->Pop(std::chrono::seconds(60));
  ASSERT_TRUE(first.has_value());
  engine->Cancel(request.id);
  Answer answer;
  answer.Add(std::move(*first));  // the whole answer, when this thread slept through it
  if (!answer.finish) answer = Wait(*request.events);
  EngineStats stats = engine->stats();
  if (answer.finish == FinishReason::kCancelled) {
    EXPECT_LT(stats.generated_tokens, 400);
  }
  EXPECT_EQ(stats.groups[0].free, stats.groups[0].blocks);
}

// AP-14: a cancellation races with the end of its request, 10,000 times.
TEST(Cancel, AtTheStepThatEndsTheRequestGivesOneEnd) {
  toy::ToyForward::Hooks hooks;
  hooks.light = true;
  toy::ToyEngine engine({}, toy::SmallOptions(), hooks);
  const unsigned seed = 20;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  int cancelled = 0;
  for (int i = 0; i < 10'000; ++i) {
    Pending request = Submit(*engine, Long(1 + static_cast<int>(random() % 3)));
    for (volatile unsigned spin = random() % 4000; spin > 0;) spin = spin - 1;
    engine->Cancel(request.id);
    Answer answer = Wait(*request.events);
    ASSERT_EQ(answer.ends, 1);
    ASSERT_FALSE(request.events->Pop(std::chrono::milliseconds(0)).has_value());
    cancelled += answer.finish == FinishReason::kCancelled;
  }
  EngineStats stats = engine->stats();
  EXPECT_EQ(stats.finished[static_cast<size_t>(FinishReason::kCancelled)], cancelled);
  EXPECT_EQ(stats.finished[static_cast<size_t>(FinishReason::kLength)], 10'000 - cancelled);
  EXPECT_EQ(stats.running + stats.waiting, 0);
  EXPECT_EQ(stats.groups[0].free, stats.groups[0].blocks);
  RecordProperty("cancelled", cancelled);
}

// The two in one step without a thread: a cancel that comes after the end finds nothing.
TEST(Cancel, AfterTheEndInTheSameStepIsNothing) {
  toy::ToyWorker toy;
  for (int i = 0; i < 1000; ++i) {
    auto events = std::make_shared<EventQueue>();
    uint64_t id = toy.Accept(Long(1), events);
    while (!toy->idle()) ASSERT_TRUE(toy->Step().ok());
    toy->Cancel(id);
    toy->Flush();
    Answer answer = Wait(*events);
    ASSERT_EQ(answer.ends, 1);
    ASSERT_EQ(answer.finish, FinishReason::kLength);
  }
  EXPECT_EQ(toy.stats().groups[0].free, toy.stats().groups[0].blocks);
}

}  // namespace
}  // namespace ashlar
