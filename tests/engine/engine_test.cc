#include "engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <time.h>

#include <atomic>
#include <cmath>
#include <future>
#include <limits>
#include <thread>

#include "support/engine_client.h"
#include "support/toy_model_engine.h"

namespace ashlar {
namespace {

Request Greedy(std::vector<int32_t> prompt, int max_tokens) {
  Request request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.sampling.temperature = 0;
  request.ignore_eos = true;
  return request;
}

TEST(Engine, AnswersWithMaxTokensIds) {
  toy::ToyEngine engine;
  Answer answer = Ask(*engine, Greedy({3, 4, 5}, 7));
  EXPECT_EQ(answer.ids.size(), 7u);
  EXPECT_EQ(answer.finish, FinishReason::kLength);
  EngineStats stats = engine->stats();
  EXPECT_EQ(stats.generated_tokens, 7);
  EXPECT_EQ(stats.prompt_tokens, 3);
  EXPECT_EQ(stats.steps, 7);
  EXPECT_EQ(stats.finished[static_cast<size_t>(FinishReason::kLength)], 1);
  EXPECT_EQ(stats.running, 0);
  EXPECT_EQ(stats.groups[0].free, stats.groups[0].blocks);
}

TEST(Engine, StopsAtAStopIdAndKeepsItOut) {
  toy::ToyEngine engine;
  std::vector<int32_t> free_run = Ask(*engine, Greedy({3, 4, 5}, 20)).ids;
  Request request = Greedy({3, 4, 5}, 20);
  request.stop_ids = {free_run[4]};
  Answer answer = Ask(*engine, request);
  size_t first = static_cast<size_t>(std::ranges::find(free_run, free_run[4]) - free_run.begin());
  EXPECT_EQ(answer.finish, FinishReason::kStop);
  EXPECT_EQ(answer.stop_id, free_run[4]);
  EXPECT_EQ(answer.ids,
            std::vector<int32_t>(free_run.begin(), free_run.begin() + static_cast<long>(first)));
}

TEST(Engine, DoesNotStopBeforeMinTokens) {
  toy::ToyEngine engine;
  Request request = Greedy({3, 4, 5}, 20);
  std::vector<int32_t> free_run = Ask(*engine, request).ids;
  request.stop_ids = {free_run[0]};
  request.min_tokens = 5;
  Answer answer = Ask(*engine, request);
  EXPECT_GE(answer.ids.size(), 5u);
  EXPECT_EQ(std::ranges::count(answer.ids, free_run[0]), 0);
}

TEST(Engine, TheModelsEndIdStopsUnlessIgnored) {
  toy::ToyForward::Hooks hooks;
  hooks.row = [](std::span<float> row, int32_t) { row[0] = 100; };
  toy::ToyEngine engine({}, toy::SmallOptions(), hooks);
  Request request = Greedy({3}, 4);
  EXPECT_EQ(Ask(*engine, request).ids, (std::vector<int32_t>{0, 0, 0, 0}));
  request.ignore_eos = false;
  Answer answer = Ask(*engine, request);
  EXPECT_EQ(answer.finish, FinishReason::kStop);
  EXPECT_TRUE(answer.ids.empty());
}

TEST(Engine, EndsAtTheContextLength) {
  toy::Shape shape;
  shape.context_length = 20;
  toy::ToyEngine engine(shape);
  Answer answer = Ask(*engine, Greedy({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 100));
  EXPECT_EQ(answer.ids.size(), 10u);
  EXPECT_EQ(answer.finish, FinishReason::kLength);
}

TEST(Engine, ZeroNewTokensScoresThePromptAlone) {
  toy::ToyEngine engine;
  Request request = Greedy({1, 2, 3, 4}, 0);
  request.sampling.prompt_logprobs = 2;
  Answer answer = Ask(*engine, request);
  EXPECT_TRUE(answer.ids.empty());
  EXPECT_EQ(answer.finish, FinishReason::kLength);
  ASSERT_EQ(answer.prompt_logprobs.size(), 4u);
  EXPECT_EQ(answer.prompt_logprobs[0].top.size(), 0u);
  EXPECT_EQ(answer.prompt_logprobs[3].id, 4);
  EXPECT_EQ(answer.prompt_logprobs[3].top.size(), 2u);
}

// KV-07: a repetitive prompt with logprobs, twice; the second time the cache holds all of it.
TEST(Engine, ScoresARepeatedPromptTwice) {
  toy::ToyEngine engine;
  Request request = Greedy(std::vector<int32_t>(300, 7), 1);
  request.sampling.prompt_logprobs = 5;
  request.sampling.logprobs = 5;
  Answer first = Ask(*engine, request), second = Ask(*engine, request);
  for (const Answer* answer : {&first, &second}) {
    ASSERT_EQ(answer->prompt_logprobs.size(), 300u);
    for (size_t i = 1; i < 300; ++i) {
      EXPECT_EQ(answer->prompt_logprobs[i].id, 7);
      EXPECT_EQ(answer->prompt_logprobs[i].top.size(), 5u);
      EXPECT_LT(answer->prompt_logprobs[i].logprob, 0);
      EXPECT_EQ(answer->prompt_logprobs[i].logprob, first.prompt_logprobs[i].logprob);
    }
    EXPECT_EQ(answer->logprobs.size(), 1u);
  }
  EXPECT_EQ(first.ids, second.ids);
  EXPECT_EQ(second.cached_tokens, 0);
}

TEST(Engine, RefusesWhatTheQueueCannotHold) {
  std::mutex gate;
  toy::ToyForward::Hooks hooks;
  hooks.step = [&](const StepInput&) -> Status {
    std::lock_guard hold(gate);
    return Done{};
  };
  Engine::Options options = toy::SmallOptions();
  options.queued_requests = 2;
  options.queued_tokens = 100;
  toy::ToyEngine engine({}, options, hooks);
  std::vector<std::shared_ptr<EventQueue>> accepted;
  int refused = 0;
  {
    std::lock_guard hold(gate);
    for (int i = 0; i < 20; ++i) {
      accepted.push_back(std::make_shared<EventQueue>());
      auto outcome = engine->Submit(Greedy({1, 2}, 2), accepted.back());
      if (std::holds_alternative<uint64_t>(outcome)) continue;
      EXPECT_EQ(std::get<SubmitRefusal>(outcome), SubmitRefusal::kQueueFull);
      accepted.pop_back();
      ++refused;
    }
  }
  EXPECT_GE(refused, 10);
  for (auto& events : accepted) EXPECT_EQ(Wait(*events).ids.size(), 2u);
}

TEST(Engine, RefusesAfterStopAcceptingAndFinishesWhatRuns) {
  toy::ToyEngine engine;
  Pending running = Submit(*engine, Greedy({1, 2}, 50));
  engine->StopAccepting();
  auto outcome = engine->Submit(Greedy({1}, 1), std::make_shared<EventQueue>());
  EXPECT_EQ(std::get<SubmitRefusal>(outcome), SubmitRefusal::kStopping);
  EXPECT_EQ(Wait(*running.events).ids.size(), 50u);
}

TEST(Engine, EndsEveryRequestWhenDestroyed) {
  auto events = std::make_shared<EventQueue>();
  {
    toy::ToyEngine engine;
    engine->Submit(Greedy({1, 2}, 450), events);
  }
  FinishReason finish = *Wait(*events).finish;
  EXPECT_TRUE(finish == FinishReason::kCancelled || finish == FinishReason::kLength);
}

TEST(Engine, RefusesHarmfulRequestsWithAReason) {
  toy::Shape shape;
  shape.groups[0].blocks = 4;
  toy::ToyEngine engine(shape);
  struct {
    std::vector<int32_t> prompt;
    int max_tokens;
    const char* reason;
  } cases[] = {{{}, 4, "empty"},
               {{1, 64}, 4, "token id 64 is not in the vocabulary of 64"},
               {{-1}, 4, "token id -1"},
               {std::vector<int32_t>(600, 1), 4, "the prompt has 600 tokens"},
               {{1, 2, 3}, 63, "more KV blocks than there are"}};
  for (const auto& c : cases) {
    Answer answer = Ask(*engine, Greedy(c.prompt, c.max_tokens));
    EXPECT_EQ(answer.finish, FinishReason::kError);
    EXPECT_THAT(answer.error, testing::HasSubstr(c.reason));
  }
  EXPECT_EQ(Ask(*engine, Greedy({1, 2, 3}, 62)).ids.size(), 62u);
}

// NU-01: a row that is not finite ends its request, nobody else's, and what it computed is not
// reused.
TEST(Engine, ARowThatIsNotFiniteFailsItsRequestOnly) {
  for (float poison :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    toy::ToyForward::Hooks hooks;
    hooks.row = [poison](std::span<float> row, int32_t token) {
      if (token == 63) row[40] = poison;
    };
    Engine::Options options = toy::SmallOptions();
    options.batch_tokens = 16;  // the first blocks are published before the row is seen
    toy::ToyEngine engine({}, options, hooks);
    std::vector<int32_t> prompt(40, 7);
    std::vector<int32_t> poisoned = prompt;
    poisoned.push_back(63);
    Request healthy = Greedy({1, 2, 3}, 20);
    healthy.sampling.logit_bias = {{63, -100.0f}};
    Pending good = Submit(*engine, healthy);
    Answer bad = Ask(*engine, Greedy(poisoned, 5));
    EXPECT_EQ(bad.finish, FinishReason::kError);
    EXPECT_THAT(bad.error, testing::HasSubstr("not a finite number"));
    EXPECT_TRUE(bad.ids.empty());
    EXPECT_EQ(Wait(*good.events).ids.size(), 20u);
    Request again = Greedy(prompt, 2);
    again.sampling.logit_bias = {{63, -100.0f}};
    EXPECT_EQ(Ask(*engine, again).cached_tokens, 0);
    EXPECT_EQ(engine->stats().fault, "");
  }
}

// NU-02: the last of eight that share a prefix fails at its fifth token; the others answer as
// without it, and nobody builds on what led there. (One that arrived after the failure would
// compute the prefix anew, and publish it.)
TEST(Engine, WhatOneRequestPoisonsNoOtherSees) {
  const std::vector<int32_t> prefix(32, 7);
  constexpr int32_t kCount = 8, kBad = kCount - 1;
  auto ask_all = [&](bool poison) {
    auto seen = std::make_shared<std::atomic<int>>(0);
    toy::ToyForward::Hooks hooks;
    hooks.row = [poison, seen](std::span<float> row, int32_t token) {
      if (token == 62 && ++*seen == 5 && poison) row[3] = std::nanf("");
    };
    toy::ToyEngine engine({}, toy::SmallOptions(), hooks);
    std::vector<Pending> pending;
    for (int32_t i = 0; i < kCount; ++i) {
      Request request = Greedy(prefix, 20);
      request.prompt.push_back(i);
      request.sampling.logit_bias = {{62, i == kBad ? 100.0f : -100.0f}};  // only it comes to 62
      pending.push_back(Submit(*engine, request));
    }
    std::vector<Answer> answers;
    for (const Pending& one : pending) answers.push_back(Wait(*one.events));
    Request again = Greedy(prefix, 1);
    again.prompt.push_back(9);
    answers.push_back(Ask(*engine, again));
    return answers;
  };
  const std::vector<Answer> clean = ask_all(false), poisoned = ask_all(true);
  for (size_t i = 0; i < kBad; ++i) {
    EXPECT_EQ(poisoned[i].finish, FinishReason::kLength);
    EXPECT_EQ(poisoned[i].ids, clean[i].ids) << i;
  }
  EXPECT_EQ(poisoned[kBad].finish, FinishReason::kError);
  EXPECT_EQ(poisoned[kBad].ids, std::vector<int32_t>(5, 62));
  EXPECT_EQ(clean[kCount].cached_tokens, 32);
  EXPECT_EQ(poisoned[kCount].cached_tokens, 0);
  EXPECT_EQ(poisoned[kCount].ids, clean[kCount].ids);
}

// NU-01 at start.
TEST(Engine, DoesNotStartOnLogitsThatAreNotFinite) {
  toy::ToyForward::Hooks hooks;
  hooks.row = [](std::span<float> row, int32_t) { row[9] = std::nanf(""); };
  Plan plan = toy::MakePlan({});
  auto device = toy::OpenReference();
  Engine::Options options = toy::SmallOptions();
  Engine::Parts parts{
      std::make_unique<toy::ToyForward>(plan.model, Engine::LogitRows(options), hooks), Sha256};
  auto engine =
      Engine::Start(plan, *device, {}, *toy::MakeArena(plan, *device), options, std::move(parts));
  ASSERT_FALSE(engine.ok());
  EXPECT_THAT(Text(engine.problems()), testing::HasSubstr("not a finite number"));
}

TEST(Engine, TheRehearsalLeavesNoTrace) {
  toy::ToyEngine engine;
  EngineStats stats = engine->stats();
  EXPECT_EQ(stats.steps + stats.prompt_tokens + stats.generated_tokens, 0);
  EXPECT_EQ(stats.prefix_query_tokens, 0);
  EXPECT_EQ(stats.finished, (std::array<int64_t, 4>{}));
  EXPECT_EQ(stats.groups[0].free, stats.groups[0].blocks);
}

TEST(Engine, ChecksAnIdleDeviceAndStopsServingWhenItIsOff) {
  Plan plan = toy::MakePlan({});
  auto device = toy::OpenReference();
  Engine::Options options = toy::SmallOptions();
  options.check_seconds = 0.001;
  std::atomic<int> checks{0};
  Engine::Parts parts{std::make_unique<toy::ToyForward>(plan.model, Engine::LogitRows(options)),
                      Sha256, [&]() -> Status {
                        if (++checks < 3) return Done{};
                        return Problem{"group full_attention", "differs by 0.5", "", ""};
                      }};
  auto engine = std::move(
      *Engine::Start(plan, *device, {}, *toy::MakeArena(plan, *device), options, std::move(parts)));
  while (engine->stats().fault.empty()) std::this_thread::yield();
  EXPECT_EQ(checks, 3);
  EXPECT_THAT(engine->stats().fault, testing::HasSubstr("differs by 0.5"));
}

// GP-01: a device that never answers is a fault too, told while the step still hangs.
TEST(Engine, AStepThatDoesNotEndIsAFault) {
  std::promise<void> release;
  std::shared_future<void> released = release.get_future().share();
  std::atomic<int> steps{0};
  toy::ToyForward::Hooks hooks;
  hooks.step = [&](const StepInput&) -> Status {
    if (++steps > 3) released.wait();
    return Done{};
  };
  Engine::Options options = toy::SmallOptions();
  options.hang_seconds = 0.2;  // no step but the last takes so long
  toy::ToyEngine engine({}, options, hooks);
  Pending hanging = Submit(*engine, Greedy({1, 2, 3}, 100));
  while (engine->stats().fault.empty()) std::this_thread::yield();
  EXPECT_EQ(engine->stats().fault, "a step has not ended for 0 s");
  auto refused = engine->Submit(Greedy({4}, 2), std::make_shared<EventQueue>());
  ASSERT_TRUE(std::holds_alternative<SubmitRefusal>(refused));
  EXPECT_EQ(std::get<SubmitRefusal>(refused), SubmitRefusal::kFault);
  release.set_value();
}

TEST(Engine, ADeviceFaultEndsAllAndRefusesMore) {
  std::atomic<int> steps{0};
  toy::ToyForward::Hooks hooks;
  hooks.step = [&](const StepInput&) -> Status {
    if (++steps > 3) return Problem{"attention", "the device said no", "", ""};
    return Done{};
  };
  toy::ToyEngine engine({}, toy::SmallOptions(), hooks);
  std::vector<Pending> pending;
  for (int i = 0; i < 3; ++i) {
    pending.push_back({});
    // The fault may come before the last is submitted.
    if (!std::holds_alternative<uint64_t>(
            engine->Submit(Greedy({1, 2, i}, 100), pending.back().events))) {
      pending.pop_back();
    }
  }
  ASSERT_FALSE(pending.empty());
  for (Pending& request : pending) {
    Answer answer = Wait(*request.events);
    EXPECT_EQ(answer.finish, FinishReason::kError);
    EXPECT_EQ(answer.error, "the device failed");
  }
  EngineStats stats = engine->stats();
  EXPECT_THAT(stats.fault, testing::HasSubstr("the device said no"));
  EXPECT_EQ(stats.groups[0].free, stats.groups[0].blocks);
  EXPECT_EQ(stats.groups[0].cached, 0);
  auto outcome = engine->Submit(Greedy({1}, 1), std::make_shared<EventQueue>());
  EXPECT_EQ(std::get<SubmitRefusal>(outcome), SubmitRefusal::kFault);
}

TEST(Engine, ALaterRequestWithoutASeedDrawsOtherNumbers) {
  toy::ToyEngine engine;
  Request request = Greedy({1, 2, 3}, 30);
  request.sampling.temperature = 1;
  EXPECT_NE(Ask(*engine, request).ids, Ask(*engine, request).ids);
  request.sampling.seed = 5;
  EXPECT_EQ(Ask(*engine, request).ids, Ask(*engine, request).ids);
}

// A step under way on a host has run: the next one waits for nothing.
TEST(Worker, NoStepWaitsForOneThatRanOnTheHost) {
  toy::ToyForward::Hooks hooks;
  hooks.step = [](const StepInput&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return Status(Done{});
  };
  toy::ToyWorker toy({}, toy::SmallOptions(), hooks);
  toy.Accept(Greedy({1, 2, 3}, 20), std::make_shared<EventQueue>());
  for (int step = 0; step < 6; ++step) {
    ASSERT_TRUE(toy->Step().ok());
    EXPECT_EQ(toy->Spare().count(), 0);
  }
}

}  // namespace
}  // namespace ashlar
