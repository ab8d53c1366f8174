#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <random>

namespace ashlar {
namespace {

std::unique_ptr<Sequence> MakeSequence(uint64_t id, int prompt, int max_tokens = 16) {
  auto sequence = std::make_unique<Sequence>();
  sequence->id = id;
  for (int i = 0; i < prompt; ++i) {
    sequence->tokens.push_back(static_cast<int32_t>(id * 1000) + i);
  }
  sequence->prompt_tokens = prompt;
  sequence->request.max_tokens = max_tokens;
  return sequence;
}

// What the worker does after a step, with a token made up.
void Compute(PrefixCache& cache, const Slice& slice) {
  Sequence& sequence = *slice.sequence;
  sequence.computed += slice.tokens;
  cache.Extend(sequence.path,
               std::span(sequence.tokens).first(static_cast<size_t>(sequence.computed)));
  cache.Publish(sequence.path, sequence.computed, sequence.tables);
  for (BlockTable& table : sequence.tables) table.FreeBehind(sequence.computed);
  if (sequence.remaining() == 0) sequence.tokens.push_back(5);
}

std::vector<std::pair<uint64_t, int>> Ids(const std::vector<Slice>& slices) {
  std::vector<std::pair<uint64_t, int>> ids;
  for (const Slice& slice : slices) ids.emplace_back(slice.sequence->id, slice.tokens);
  return ids;
}
using Picked = std::vector<std::pair<uint64_t, int>>;

void RemoveAll(Scheduler& scheduler) {
  while (Sequence* sequence = scheduler.oldest()) scheduler.Remove(sequence);
}

TEST(Scheduler, MayWaitWhileAllAnswerThereIsRoomAndNoneHasCome) {
  PrefixCache cache({{16, 16, 0, 100}}, {});
  Scheduler scheduler(cache, {2, 32, 2, 512});
  EXPECT_TRUE(scheduler.MayWait());
  scheduler.Add(MakeSequence(1, 40));
  EXPECT_FALSE(scheduler.MayWait());  // it need not wait for others
  for (const Slice& slice : scheduler.Schedule()) Compute(cache, slice);
  EXPECT_FALSE(scheduler.MayWait());  // its prompt goes on
  for (const Slice& slice : scheduler.Schedule()) Compute(cache, slice);
  EXPECT_TRUE(scheduler.MayWait());
  scheduler.Add(MakeSequence(2, 8));
  for (const Slice& slice : scheduler.Schedule()) Compute(cache, slice);
  EXPECT_FALSE(scheduler.MayWait());  // no more than two run
  RemoveAll(scheduler);
}

TEST(Scheduler, WaitsForNoneWhileBlocksAreShort) {
  PrefixCache cache({{16, 16, 0, 4}}, {});
  Scheduler scheduler(cache, {4, 64, 4, 512});
  scheduler.Add(MakeSequence(1, 30, 2));
  for (const Slice& slice : scheduler.Schedule()) Compute(cache, slice);
  EXPECT_TRUE(scheduler.MayWait());
  scheduler.Add(MakeSequence(2, 30, 2));
  for (const Slice& slice : scheduler.Schedule()) Compute(cache, slice);
  EXPECT_FALSE(scheduler.MayWait());
  RemoveAll(scheduler);
}

TEST(Scheduler, DecodesFirstAndFillsTheRestWithChunksInOrderOfArrival) {
  PrefixCache cache({{16, 16, 0, 100}}, {});
  Scheduler scheduler(cache, {4, 32, 4, 512});
  scheduler.Add(MakeSequence(1, 10));
  scheduler.Add(MakeSequence(2, 50));
  scheduler.Add(MakeSequence(3, 5));
  auto slices = scheduler.Schedule();
  EXPECT_EQ(Ids(slices), (Picked{{1, 10}, {2, 22}}));
  EXPECT_EQ(slices[0].logits, 1);
  EXPECT_EQ(slices[1].logits, 0);  // the middle of a prompt
  for (const Slice& slice : slices) Compute(cache, slice);
  slices = scheduler.Schedule();
  EXPECT_EQ(Ids(slices), (Picked{{1, 1}, {2, 28}, {3, 3}}));
  for (const Slice& slice : slices) Compute(cache, slice);
  EXPECT_EQ(Ids(scheduler.Schedule()), (Picked{{1, 1}, {2, 1}, {3, 2}}));
  RemoveAll(scheduler);
  EXPECT_EQ(cache.pool(0).free(), 99);
}

TEST(Scheduler, RunsNoMoreThanItsSequences) {
  PrefixCache cache({{16, 16, 0, 100}}, {});
  Scheduler scheduler(cache, {2, 32, 2, 512});
  for (uint64_t id = 1; id <= 3; ++id) scheduler.Add(MakeSequence(id, 4));
  EXPECT_EQ(Ids(scheduler.Schedule()), (Picked{{1, 4}, {2, 4}}));
  EXPECT_EQ(scheduler.waiting(), 1);
  EXPECT_EQ(scheduler.waiting_tokens(), 4);
  RemoveAll(scheduler);
}

TEST(Scheduler, PreemptsTheYoungestWhenBlocksRunOut) {
  PrefixCache cache({{4, 4, 0, 1 + 5}}, {});
  Scheduler scheduler(cache, {4, 64, 4, 512});
  scheduler.Add(MakeSequence(1, 8));
  scheduler.Add(MakeSequence(2, 8));
  for (const Slice& slice : scheduler.Schedule()) Compute(cache, slice);
  // Both need a third block; one is left.
  auto slices = scheduler.Schedule();
  EXPECT_EQ(Ids(slices), (Picked{{1, 1}}));
  EXPECT_EQ(scheduler.preemptions(), 1);
  EXPECT_EQ(scheduler.waiting(), 1);
  for (const Slice& slice : slices) Compute(cache, slice);
  EXPECT_EQ(Ids(scheduler.Schedule()), (Picked{{1, 1}}));  // does not come straight back
  RemoveAll(scheduler);
}

TEST(Scheduler, StartsAgainOnTheBlocksThatSurvived) {
  PrefixCache cache({{4, 4, 0, 1 + 6}}, {});
  Scheduler scheduler(cache, {4, 64, 4, 512});
  scheduler.Add(MakeSequence(1, 12));
  scheduler.Add(MakeSequence(2, 12));
  for (const Slice& slice : scheduler.Schedule()) Compute(cache, slice);
  EXPECT_EQ(Ids(scheduler.Schedule()), (Picked{{1, 1}}));
  scheduler.Remove(scheduler.oldest());
  // 13 tokens, of which 8 are still cached (a block went to the first sequence).
  EXPECT_EQ(Ids(scheduler.Schedule()), (Picked{{2, 5}}));
  EXPECT_EQ(scheduler.hit_tokens(), 0);  // looking up again is not counted
  EXPECT_EQ(scheduler.query_tokens(), 24);
  RemoveAll(scheduler);
}

TEST(Scheduler, KnowsWhatCanNeverFit) {
  PrefixCache cache({{4, 4, 0, 1 + 5}}, {});
  Scheduler scheduler(cache, {4, 64, 4, 512});
  EXPECT_TRUE(scheduler.CanEverFit(*MakeSequence(1, 10, 11)));  // the 21st is never computed
  EXPECT_FALSE(scheduler.CanEverFit(*MakeSequence(1, 10, 12)));
  EXPECT_FALSE(scheduler.CanEverFit(*MakeSequence(1, 21, 0)));
}

TEST(Scheduler, ASlidingPoolSmallerThanTheBatchShortensChunks) {
  PrefixCache cache({{4, 4, 8, 1 + 4}}, {});
  Scheduler scheduler(cache, {4, 64, 4, 512});
  scheduler.Add(MakeSequence(1, 40));
  int steps = 0;
  Sequence* sequence = scheduler.oldest();
  while (sequence->generated() == 0) {
    const auto& slices = scheduler.Schedule();
    ASSERT_EQ(slices.size(), 1u);
    EXPECT_LE(slices[0].tokens, 16);
    Compute(cache, slices[0]);
    ASSERT_LT(++steps, 40);
  }
  RemoveAll(scheduler);
}

TEST(Scheduler, ScoredPromptsGetALogitRowForEachToken) {
  PrefixCache cache({{16, 16, 0, 100}}, {});
  Scheduler scheduler(cache, {4, 64, 6, 512});
  auto scored = MakeSequence(1, 10);
  scored->request.sampling.prompt_logprobs = 0;
  scheduler.Add(std::move(scored));
  auto slices = scheduler.Schedule();
  EXPECT_EQ(slices[0].tokens, 6);
  EXPECT_EQ(slices[0].logits, 6);
  Compute(cache, slices[0]);
  EXPECT_EQ(scheduler.Schedule()[0].logits, 4);
  RemoveAll(scheduler);
}

// Random arrivals, ends and pool sizes: each step runs something, keeps to every limit, and at the
// end all blocks are back.
TEST(Scheduler, KeepsItsPromisesOnRandomTraces) {
  for (unsigned seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    auto between = [&](int low, int high) {
      return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
    };
    std::vector<KvGroupShape> shapes = {{4, 4, 0, between(12, 40)}};
    if (between(0, 1) == 1) shapes.push_back({8, 4, between(1, 20), between(6, 20)});
    PrefixCache cache(shapes, {.enabled = between(0, 1) == 1});
    Scheduler::Limits limits{between(1, 5), between(1, 40), 0, 512};
    limits.logit_rows = limits.sequences + between(0, 3);
    Scheduler scheduler(cache, limits);
    uint64_t id = 1;
    int ended = 0;
    for (int step = 0; step < 300 && (step < 150 || !scheduler.idle()); ++step) {
      if (step < 150 && between(0, 3) == 0) {
        auto sequence = MakeSequence(id, between(1, 30), between(1, 10));
        sequence->request.sampling.prompt_logprobs = between(0, 5) == 0 ? 0 : -1;
        if (scheduler.CanEverFit(*sequence)) {
          ++id;
          scheduler.Add(std::move(sequence));
        }
      }
      bool had_work = !scheduler.idle();
      auto slices = scheduler.Schedule();
      ASSERT_EQ(!slices.empty(), had_work);
      int tokens = 0, logits = 0;
      uint64_t last_id = 0;
      bool decoding = true;
      for (const Slice& slice : slices) {
        tokens += slice.tokens;
        logits += slice.logits;
        bool decode = slice.sequence->remaining() == 1;
        if (decode != decoding) last_id = 0;
        decoding = decode;
        ASSERT_GT(slice.sequence->id, last_id);
        last_id = slice.sequence->id;
        for (const BlockTable& table : slice.sequence->tables) {
          ASSERT_GE(table.capacity(), slice.sequence->computed + slice.tokens);
        }
      }
      ASSERT_LE(tokens, limits.batch_tokens);
      ASSERT_LE(logits, limits.logit_rows);
      ASSERT_LE(scheduler.running(), limits.sequences);
      for (const Slice& slice : slices) Compute(cache, slice);
      for (const Slice& slice : slices) {
        Sequence* sequence = slice.sequence;
        if (sequence->generated() < sequence->request.max_tokens && between(0, 30) != 0) continue;
        scheduler.Remove(sequence);
        ++ended;
      }
    }
    RemoveAll(scheduler);
    for (int g = 0; g < cache.groups(); ++g) {
      cache.pool(g).CheckInvariants();
      ASSERT_EQ(cache.pool(g).free(), cache.pool(g).total());
    }
    EXPECT_GT(ended, 0);
  }
}

}  // namespace
}  // namespace ashlar
