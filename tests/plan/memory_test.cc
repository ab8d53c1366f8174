#include "plan/memory.h"

#include <gtest/gtest.h>

#include <random>

#include "support/plan_builders.h"

namespace ashlar {
namespace {

PoolNeed Full(int64_t block_bytes, int block = 16) {
  CacheSpec cache;
  return {cache, block, block_bytes};
}

PoolNeed Sliding(int window, int64_t block_bytes, int block = 16) {
  PoolNeed need = Full(block_bytes, block);
  need.cache.kind = KvKind::kSliding;
  need.cache.window = window;
  return need;
}

TEST(SplitPool, GivesEveryGroupTheSameCapacity) {
  // 512 and 81 blocks a sequence of 8192 tokens.
  std::vector<PoolNeed> needs = {Full(1000), Sliding(1024, 3000)};
  int64_t sequence = 512 * 1000 + 81 * 3000;
  std::vector<int64_t> blocks = SplitPool(needs, 10 * sequence + 4000, 8192, 256, 64);
  EXPECT_EQ(blocks, (std::vector<int64_t>{5121, 811}));
}

TEST(SplitPool, IsCappedAtWhatAllSequencesUse) {
  std::vector<int64_t> blocks =
      SplitPool({Full(1000), Sliding(1024, 3000)}, int64_t{1} << 50, 8192, 256, 64);
  EXPECT_EQ(blocks, (std::vector<int64_t>{64 * 512 + 1, 64 * 81 + 1}));
}

TEST(SplitPool, NeverTakesMoreThanItHas) {
  uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 1000; ++round) {
    std::vector<PoolNeed> needs;
    for (size_t i = 0; i <= random() % 4; ++i) {
      int64_t bytes = 1 + random() % 100'000;
      needs.push_back(random() % 2 ? Full(bytes) : Sliding(1 + random() % 5000, bytes));
    }
    int64_t length = 1 + random() % 10'000;
    int64_t one = *SequenceBytes(needs, length, 512) + NullBlockBytes(needs);
    int64_t bytes = one + static_cast<int64_t>(random()) * 4;
    std::vector<int64_t> blocks = SplitPool(needs, bytes, length, 512, 100);
    int64_t used = 0;
    for (size_t i = 0; i < needs.size(); ++i) {
      used += blocks[i] * needs[i].block_bytes;
      EXPECT_GE(blocks[i] - 1,
                BlocksPerRequest(needs[i].cache, needs[i].block_tokens, length, 512));
    }
    EXPECT_LE(used, bytes);
    EXPECT_EQ(LongestContext(needs, one, length, 512), length);
  }
}

TEST(LongestContext, IsWhatFits) {
  std::vector<PoolNeed> needs = {Full(1000)};
  EXPECT_EQ(LongestContext(needs, 11'000, 8192, 256), 160);
  EXPECT_EQ(LongestContext(needs, 2000, 8192, 256), 16);
  EXPECT_EQ(LongestContext(needs, 1999, 8192, 256), 0);
  EXPECT_EQ(LongestContext(needs, int64_t{1} << 50, 8192, 256), 8192);
}

TEST(SequenceBytes, DoesNotWrap) {
  EXPECT_EQ(SequenceBytes({Full(INT64_MAX / 2)}, 8192, 256), std::nullopt);
}

}  // namespace
}  // namespace ashlar
