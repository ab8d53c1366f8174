#include "kv/block_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <random>
#include <set>

namespace ashlar {
namespace {

TEST(BlockPool, NeverGivesOutTheNullBlock) {
  BlockPool pool(4);
  std::set<BlockId> taken;
  while (auto block = pool.Take()) taken.insert(*block);
  EXPECT_EQ(taken, (std::set<BlockId>{1, 2, 3}));
  EXPECT_EQ(pool.total(), 3);
  EXPECT_EQ(pool.free(), 0);
}

TEST(BlockPool, EvictsTheDeepestBlockOfTheLongestFreedPrefixFirst) {
  BlockPool pool(5);
  std::vector<BlockId> chain;
  for (PrefixId prefix : {10, 11, 12}) {
    chain.push_back(*pool.Take());
    pool.Publish(chain.back(), prefix);
  }
  for (auto block = chain.rbegin(); block != chain.rend(); ++block) pool.Release(*block);
  EXPECT_EQ(pool.cached(), 3);
  pool.Take();  // the one without a prefix goes first
  EXPECT_EQ(pool.evictions(), 0);
  pool.Take();
  EXPECT_EQ(pool.Find(12), kNullBlock);
  EXPECT_NE(pool.Find(11), kNullBlock);
  EXPECT_EQ(pool.evictions(), 1);
}

TEST(BlockPool, FirstBlockPublishedUnderAPrefixStays) {
  BlockPool pool(3);
  BlockId first = *pool.Take(), second = *pool.Take();
  EXPECT_TRUE(pool.Publish(first, 7));
  EXPECT_FALSE(pool.Publish(second, 7));
  EXPECT_EQ(pool.Find(7), first);
  pool.Release(second);
  EXPECT_EQ(pool.cached(), 0);  // the loser holds nothing reusable
}

TEST(BlockPool, TellsEachPrefixItForgetsOnce) {
  std::vector<PrefixId> forgotten;
  BlockPool pool(3, [&](PrefixId prefix) { forgotten.push_back(prefix); });
  BlockId a = *pool.Take(), b = *pool.Take();
  pool.Publish(a, 1);
  pool.Publish(b, 2);
  pool.Release(a);
  pool.Take();  // evicts 1
  pool.Forget(2);
  pool.Forget(2);
  EXPECT_EQ(forgotten, (std::vector<PrefixId>{1, 2}));
}

TEST(BlockPoolDeathTest, ReleasingAFreeBlockIsABug) {
  BlockPool pool(3);
  BlockId block = *pool.Take();
  pool.Release(block);
  EXPECT_DEATH(pool.Release(block), "released by its holder");
}

// What the pool promises, written as slowly and plainly as possible.
struct Model {
  struct Block {
    int references = 0;
    PrefixId prefix = kNoPrefix;
  };
  std::map<BlockId, Block> blocks;
  std::list<BlockId> lru;  // free with a prefix, least recently freed first

  int64_t Free() const {
    return std::count_if(blocks.begin(), blocks.end(),
                         [](const auto& entry) { return entry.second.references == 0; });
  }
  BlockId Find(PrefixId prefix) const {
    for (const auto& [id, block] : blocks) {
      if (block.prefix == prefix) return id;
    }
    return kNullBlock;
  }
  void Release(BlockId id) {
    if (--blocks[id].references == 0 && blocks[id].prefix != kNoPrefix) lru.push_back(id);
  }
  void Forget(PrefixId prefix) {
    BlockId id = Find(prefix);
    if (id == kNullBlock) return;
    blocks[id].prefix = kNoPrefix;
    lru.remove(id);
  }
  void Took(BlockId id) {
    ASSERT_EQ(blocks[id].references, 0);
    if (blocks[id].prefix != kNoPrefix) {
      ASSERT_EQ(id, lru.front());
      ASSERT_EQ(Free(), static_cast<int64_t>(lru.size())) << "a block without a prefix was free";
      lru.pop_front();
    }
    blocks[id] = {1, kNoPrefix};
  }
};

TEST(BlockPool, AgreesWithAPlainModelOnRandomTraces) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
    BlockId total = static_cast<BlockId>(1 + below(12));
    BlockPool pool(total + 1);
    Model model;
    for (BlockId id = 1; id <= total; ++id) model.blocks[id];
    std::vector<BlockId> held;  // one entry a reference

    for (int step = 0; step < 600; ++step) {
      PrefixId prefix = static_cast<PrefixId>(below(20));
      switch (below(6)) {
        case 0:
        case 1: {
          auto block = pool.Take();
          ASSERT_EQ(block.has_value(), model.Free() > 0);
          if (!block) break;
          model.Took(*block);
          if (HasFatalFailure()) return;
          held.push_back(*block);
          break;
        }
        case 2: {
          if (held.empty()) break;
          size_t i = below(held.size());
          pool.Release(held[i]);
          model.Release(held[i]);
          held.erase(held.begin() + static_cast<long>(i));
          break;
        }
        case 3: {
          if (held.empty()) break;
          BlockId block = held[below(held.size())];
          if (model.blocks[block].prefix != kNoPrefix) break;
          bool expected = model.Find(prefix) == kNullBlock;
          ASSERT_EQ(pool.Publish(block, prefix), expected);
          if (expected) model.blocks[block].prefix = prefix;
          break;
        }
        case 4: {
          BlockId block = pool.Find(prefix);
          ASSERT_EQ(block, model.Find(prefix));
          if (block == kNullBlock) break;
          pool.Hold(block);
          if (model.blocks[block].references++ == 0) model.lru.remove(block);
          held.push_back(block);
          break;
        }
        default:
          if (below(8) != 0) break;
          pool.Forget(prefix);
          model.Forget(prefix);
      }
      ASSERT_EQ(pool.free(), model.Free());
      ASSERT_EQ(pool.cached(), static_cast<int64_t>(model.lru.size()));
    }
    pool.CheckInvariants();
  }
}

}  // namespace
}  // namespace ashlar
