#include "kv/prefix_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace ashlar {
namespace {

std::vector<int32_t> Tokens(int count, int32_t first = 0) {
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

// A sequence of the cache, with every token computed.
struct Owner {
  PrefixCache& cache;
  PrefixPath path;
  std::vector<BlockTable> tables;

  Owner(PrefixCache& c, const std::vector<int32_t>& tokens, std::string_view salt = "")
      : cache(c), path(c.Begin(salt)), tables(c.MakeTables()) {
    cache.Extend(path, tokens);
    for (BlockTable& table : tables) {
      EXPECT_TRUE(table.Cover(static_cast<int64_t>(tokens.size())));
    }
    cache.Publish(path, static_cast<int64_t>(tokens.size()), tables);
  }
  void End() {
    for (BlockTable& table : tables) table.Clear();
    cache.End(path);
  }
};

int64_t MatchOf(PrefixCache& cache, const std::vector<int32_t>& tokens, std::string_view salt = "",
                int64_t limit = -1) {
  PrefixPath path = cache.Begin(salt);
  cache.Extend(path, tokens);
  int64_t match =
      cache.Match(path, limit < 0 ? static_cast<int64_t>(tokens.size()) - 1 : limit).tokens;
  cache.End(path);
  return match;
}

TEST(PrefixCache, FindsWholeBlocksShortOfTheLastToken) {
  PrefixCache cache({{4, 4, 0, 32}}, {});
  Owner(cache, Tokens(10)).End();
  EXPECT_EQ(MatchOf(cache, Tokens(10)), 8);
  EXPECT_EQ(MatchOf(cache, Tokens(8)), 4);  // the eighth is computed for its logits
  EXPECT_EQ(MatchOf(cache, Tokens(3)), 0);
  std::vector<int32_t> other = Tokens(10);
  other[5] = 99;
  EXPECT_EQ(MatchOf(cache, other), 4);
}

TEST(PrefixCache, SharesOnlyAmongEqualSalts) {
  PrefixCache cache({{4, 4, 0, 32}}, {});
  Owner(cache, Tokens(10), "tenant").End();
  EXPECT_EQ(MatchOf(cache, Tokens(10)), 0);
  EXPECT_EQ(MatchOf(cache, Tokens(10), "tenan"), 0);
  EXPECT_EQ(MatchOf(cache, Tokens(10), "tenant"), 8);
}

TEST(PrefixCache, DisabledKeepsNothing) {
  PrefixCache cache({{4, 4, 0, 32}}, {.enabled = false});
  Owner(cache, Tokens(10)).End();
  EXPECT_EQ(MatchOf(cache, Tokens(10)), 0);
  EXPECT_EQ(cache.pool(0).cached(), 0);
}

TEST(PrefixCache, EndsAtABlockOfEveryGroup) {
  PrefixCache cache({{4, 4, 0, 64}, {6, 6, 0, 64}}, {});
  Owner(cache, Tokens(40)).End();
  EXPECT_EQ(MatchOf(cache, Tokens(40)), 36);
  EXPECT_EQ(MatchOf(cache, Tokens(36)), 24);
}

TEST(PrefixCache, ASlidingWindowNeedsOnlyItsLastBlocks) {
  // Window 6, block 4: the last ceil(5 / 4) = 2 blocks.
  PrefixCache cache({{4, 4, 0, 64}, {4, 4, 6, 64}}, {});
  Owner owner(cache, Tokens(24));
  owner.tables[1].FreeBehind(24);
  auto gone = owner.path.chains[0].nodes;
  owner.End();
  for (int block : {0, 1, 2}) cache.pool(1).Forget(gone[block]);
  EXPECT_EQ(MatchOf(cache, Tokens(24)), 20);
  // Without block 4 too, blocks 3 alone and what lies before are not enough.
  cache.pool(1).Forget(gone[4]);
  EXPECT_EQ(MatchOf(cache, Tokens(24)), 0);
}

TEST(PrefixCache, AdoptsNullBlocksBehindTheWindow) {
  PrefixCache cache({{4, 4, 0, 64}, {4, 4, 6, 64}}, {});
  Owner(cache, Tokens(24)).End();
  PrefixPath path = cache.Begin("");
  cache.Extend(path, Tokens(24));
  std::vector<BlockTable> tables = cache.MakeTables();
  cache.Adopt(path, 20, tables);
  EXPECT_EQ(std::ranges::count(tables[0].blocks(), kNullBlock), 0);
  EXPECT_EQ(std::ranges::count(tables[1].blocks(), kNullBlock), 3);
  EXPECT_EQ(tables[1].blocks().size(), 5u);
  for (BlockTable& table : tables) table.Clear();
  cache.End(path);
}

// The definition, by trying every length from the longest, for the groups [first, end).
int64_t SlowMatch(const PrefixCache& cache, const PrefixPath& path, int64_t limit, int64_t common,
                  const std::vector<int>& chain_of, int first, int end) {
  for (int64_t tokens = limit - limit % common; tokens > 0; tokens -= common) {
    bool all = true;
    for (int g = first; g < end; ++g) {
      const KvGroupShape& shape = cache.shape(g);
      for (int64_t i = 0; i < tokens / shape.block_tokens; ++i) {
        bool seen = shape.window == 0 || (i + 1) * shape.block_tokens > tokens - shape.window + 1;
        if (seen && cache.pool(g).Find(path.chains[chain_of[g]].nodes[i]) == kNullBlock)
          all = false;
      }
    }
    if (all) return tokens;
  }
  return 0;
}

TEST(PrefixCache, MatchIsTheLongestThatEveryGroupCanUse) {
  for (unsigned seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    auto pick = [&](std::initializer_list<int> of) { return of.begin()[random() % of.size()]; };
    std::vector<KvGroupShape> shapes;
    std::vector<int> chain_of, sizes;
    int64_t common = 1;
    for (unsigned g = 0, groups = 1 + random() % 3; g < groups; ++g) {
      int block = pick({2, 3, 4});
      shapes.push_back({block, block, pick({0, 0, 1, 2, 3, 5, 9, 14}), 200});
      common = std::lcm(common, int64_t{block});
      auto known = std::ranges::find(sizes, block);
      chain_of.push_back(static_cast<int>(known - sizes.begin()));
      if (known == sizes.end()) sizes.push_back(block);
    }
    PrefixCache cache(shapes, {});
    std::vector<int32_t> tokens = Tokens(60);
    Owner owner(cache, tokens);
    for (int g = 0; g < cache.groups(); ++g) {
      for (PrefixId node : owner.path.chains[chain_of[g]].nodes) {
        if (random() % 8 == 0) cache.pool(g).Forget(node);
      }
    }
    for (int64_t limit = 0; limit < 60; ++limit) {
      PrefixMatch match = cache.Match(owner.path, limit);
      ASSERT_EQ(match.tokens,
                SlowMatch(cache, owner.path, limit, common, chain_of, 0, cache.groups()))
          << "limit " << limit;
      for (int g = 0; g < cache.groups(); ++g) {
        ASSERT_EQ(match.by_group[g],
                  SlowMatch(cache, owner.path, limit, shapes[g].block_tokens, chain_of, g, g + 1))
            << "limit " << limit << " group " << g;
      }
    }
    owner.End();
  }
}

TEST(PrefixCache, NamesOnlyWhatTheBlocksHold) {
  PrefixCache cache({{2, 2, 0, 9}, {2, 2, 3, 9}}, {});
  size_t most = 0;
  for (int i = 0; i < 500; ++i) {
    Owner owner(cache, Tokens(9, 10 * i));
    owner.tables[1].FreeBehind(9);
    owner.End();
    cache.pool(0).CheckInvariants();
    cache.pool(1).CheckInvariants();
    most = std::max(most, cache.prefixes());
  }
  // 8 blocks in each of two pools, and at most 4 ancestors of each chain beside them.
  EXPECT_LE(most, 32u);
  cache.ForgetAll();
  EXPECT_EQ(cache.prefixes(), 0u);
}

TEST(PrefixCache, ForgetsAPath) {
  PrefixCache cache({{4, 4, 0, 32}}, {});
  Owner owner(cache, Tokens(10));
  Owner(cache, Tokens(10, 100)).End();
  cache.Forget(owner.path);
  owner.End();
  EXPECT_EQ(MatchOf(cache, Tokens(10)), 0);
  EXPECT_EQ(MatchOf(cache, Tokens(10, 100)), 8);
}

}  // namespace
}  // namespace ashlar
