// The prefix cache through the whole engine: the toy model's answers change when any block is not
// the one that belongs there.
#include <gtest/gtest.h>

#include <random>

#include "support/engine_client.h"
#include "support/toy_model_engine.h"

namespace ashlar {
namespace {

Request Greedy(std::vector<int32_t> prompt, int max_tokens = 8) {
  Request request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.sampling.temperature = 0;
  request.ignore_eos = true;
  return request;
}

std::vector<int32_t> RandomPrompt(std::mt19937& random, int length) {
  std::vector<int32_t> prompt;
  for (int i = 0; i < length; ++i) prompt.push_back(static_cast<int32_t>(random() % 64));
  return prompt;
}

Engine::Options WithoutCache() {
  Engine::Options options = toy::SmallOptions();
  options.prefix_cache = false;
  return options;
}

Sha256Digest FourBits(std::span<const std::byte> bytes) {
  Sha256Digest digest{};
  digest[0] = Sha256(bytes)[0] & std::byte{15};
  return digest;
}

// KV-01: a hash of 16 values, 200 prompts of few blocks, many with a middle block in common.
TEST(Prefix, CollidingHashesNeverGiveAnotherPromptsBlocks) {
  toy::Shape shape;
  shape.groups[0].block_tokens = 4;
  toy::ToyEngine cold(shape, WithoutCache());
  toy::ToyEngine weak(shape, toy::SmallOptions(), {}, FourBits);
  std::mt19937 random(3);
  std::vector<int32_t> middle = RandomPrompt(random, 8);
  for (int i = 0; i < 200; ++i) {
    std::vector<int32_t> prompt = RandomPrompt(random, 4);
    if (random() % 2 == 0) prompt.insert(prompt.end(), middle.begin(), middle.end());
    std::vector<int32_t> tail = RandomPrompt(random, 3);
    prompt.insert(prompt.end(), tail.begin(), tail.end());
    Answer expected = Ask(*cold, Greedy(prompt));
    ASSERT_EQ(Ask(*weak, Greedy(prompt)).ids, expected.ids) << "prompt " << i;
    ASSERT_EQ(Ask(*weak, Greedy(prompt)).ids, expected.ids) << "prompt " << i << " again";
  }
  EXPECT_GT(weak->stats().prefix_hit_tokens, 0);
}

// KV-02
TEST(Prefix, SaltsShareNothing) {
  toy::ToyEngine engine;
  std::mt19937 random(4);
  Request request = Greedy(RandomPrompt(random, 50));
  request.cache_salt = "alpha";
  Answer first = Ask(*engine, request);
  request.cache_salt = "";
  EXPECT_EQ(Ask(*engine, request).cached_tokens, 0);
  request.cache_salt = "alph";
  EXPECT_EQ(Ask(*engine, request).cached_tokens, 0);
  request.cache_salt = "alpha";
  Answer again = Ask(*engine, request);
  EXPECT_EQ(again.cached_tokens, 48);
  EXPECT_EQ(again.ids, first.ids);
}

// KV-04: the same prompt again, then the same beginning with another end.
TEST(Prefix, AHitEqualsAMiss) {
  for (KvKind second : {KvKind::kFull, KvKind::kSliding}) {
    toy::Shape shape;
    shape.groups = {{KvKind::kFull, 0, 2, 16, 0, 200},
                    {second, second == KvKind::kFull ? 0 : 24, 2, 16, 0, 200}};
    toy::ToyEngine cold(shape, WithoutCache());
    toy::ToyEngine warm(shape);
    std::mt19937 random(5);
    for (int length : {15, 16, 17, 31, 32, 33, 100}) {
      std::vector<int32_t> prompt = RandomPrompt(random, length);
      Answer expected = Ask(*cold, Greedy(prompt));
      EXPECT_EQ(Ask(*warm, Greedy(prompt)).ids, expected.ids);
      Answer hit = Ask(*warm, Greedy(prompt));
      EXPECT_EQ(hit.ids, expected.ids);
      EXPECT_EQ(hit.cached_tokens, (length - 1) / 16 * 16);
      prompt.back() = (prompt.back() + 1) % 64;
      EXPECT_EQ(Ask(*warm, Greedy(prompt)).ids, Ask(*cold, Greedy(prompt)).ids);
    }
  }
}

TEST(Prefix, AnAnswersOwnBlocksServeTheNextTurn) {
  toy::ToyEngine engine;
  std::mt19937 random(6);
  std::vector<int32_t> prompt = RandomPrompt(random, 20);
  Answer first = Ask(*engine, Greedy(prompt, 30));
  prompt.insert(prompt.end(), first.ids.begin(), first.ids.end());
  prompt.push_back(9);
  EXPECT_EQ(Ask(*engine, Greedy(prompt)).cached_tokens, 48);
}

// KV-06: a prefix, then a request that needs the whole pool, then the prefix again; needles are
// ids of the prefix that the toy model's answer hangs on.
TEST(Prefix, AnEvictedPrefixIsComputedAgain) {
  toy::Shape shape;
  shape.groups = {{KvKind::kFull, 0, 2, 16, 0, 12}, {KvKind::kSliding, 20, 1, 16, 0, 12}};
  shape.context_length = 192;
  toy::ToyEngine engine(shape);
  std::mt19937 random(7);
  std::vector<int32_t> prefix = RandomPrompt(random, 90);
  Answer first = Ask(*engine, Greedy(prefix));
  for (int round = 0; round < 20; ++round) {
    Ask(*engine, Greedy(RandomPrompt(random, 180), 4));
    Answer again = Ask(*engine, Greedy(prefix));
    ASSERT_EQ(again.ids, first.ids) << "round " << round;
    ASSERT_EQ(Ask(*engine, Greedy(prefix)).ids, first.ids) << "round " << round;
    prefix[static_cast<size_t>(round)] = (prefix[static_cast<size_t>(round)] + 1) % 64;
    ASSERT_NE(Ask(*engine, Greedy(prefix)).ids, first.ids) << "the needle is read";
    prefix[static_cast<size_t>(round)] = (prefix[static_cast<size_t>(round)] + 63) % 64;
  }
  EngineStats stats = engine->stats();
  EXPECT_GT(stats.groups[0].evictions, 0);
  EXPECT_GT(stats.prefix_hit_tokens, 0);
  EXPECT_EQ(stats.groups[0].free, stats.groups[0].blocks);
}

TEST(Prefix, CountsQueriesAndHitsByTokensAtOneLookUp) {
  toy::ToyEngine engine;
  std::mt19937 random(8);
  std::vector<int32_t> prompt = RandomPrompt(random, 40);
  Ask(*engine, Greedy(prompt));
  Ask(*engine, Greedy(prompt));
  EngineStats stats = engine->stats();
  EXPECT_EQ(stats.prefix_query_tokens, 80);
  EXPECT_EQ(stats.prefix_hit_tokens, 32);
  EXPECT_EQ(stats.cached_prompt_tokens, 32);
  EXPECT_EQ(stats.groups[0].hit_tokens, 32);
}

// A hybrid hits what both groups have; each counts what it has by itself.
TEST(Prefix, CountsWhatEachGroupAloneWouldHit) {
  toy::Shape shape;
  shape.groups = {{KvKind::kFull, 0, 1, 16, 0, 100}, {KvKind::kSliding, 17, 1, 16, 0, 8}};
  toy::ToyEngine engine(shape);
  std::mt19937 random(10);
  std::vector<int32_t> prompt = RandomPrompt(random, 70);
  Ask(*engine, Greedy(prompt));
  // Others take the window's few blocks, and leave those of full attention alone.
  for (int i = 0; i < 3; ++i) Ask(*engine, Greedy(RandomPrompt(random, 70)));
  EXPECT_EQ(Ask(*engine, Greedy(prompt)).cached_tokens, 0);
  EngineStats stats = engine->stats();
  EXPECT_EQ(stats.prefix_hit_tokens, 0);
  EXPECT_EQ(stats.groups[0].hit_tokens, 64);
  EXPECT_EQ(stats.groups[1].hit_tokens, 0);
  EXPECT_EQ(stats.groups[1].query_tokens, 5 * 70);
  Ask(*engine, Greedy(prompt));
  stats = engine->stats();
  EXPECT_EQ(stats.prefix_hit_tokens, 64);
  EXPECT_EQ(stats.groups[0].hit_tokens, 128);
  EXPECT_EQ(stats.groups[1].hit_tokens, 64);
}

// MM-01, short: names of prefixes and free blocks settle while unique prompts go by. The figure
// over a million is engine_bench soak.
TEST(Prefix, UniquePromptsLeaveNothingBehind) {
  toy::ToyForward::Hooks hooks;
  hooks.light = true;
  toy::Shape shape;
  shape.groups[0].blocks = 50;
  toy::ToyWorker toy(shape, toy::SmallOptions(), hooks);
  std::mt19937 random(9);
  int64_t settled = 0;
  auto events = std::make_shared<EventQueue>();
  for (int i = 0; i < 4000; ++i) {
    toy.Accept(Greedy(RandomPrompt(random, 40), 1), events);
    while (!toy->idle()) ASSERT_TRUE(toy->Step().ok());
    toy->Flush();
    int64_t names = toy.stats().prefix_names;
    if (i == 1000) settled = names;
    ASSERT_TRUE(i <= 1000 || names == settled) << names;
  }
  EXPECT_EQ(toy.stats().groups[0].free, 50);
}

}  // namespace
}  // namespace ashlar
