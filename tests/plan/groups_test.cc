#include "plan/groups.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "support/plan_builders.h"

namespace ashlar {
namespace {

using testing::FullLayer;
using testing::SlidingLayer;

std::vector<LayerSpec> Layers(int full, int sliding) {
  std::vector<LayerSpec> layers(static_cast<size_t>(full), FullLayer(4, 2, 32));
  layers.insert(layers.end(), static_cast<size_t>(sliding), SlidingLayer(128));
  return layers;
}

EqualSplit Split(int full, int sliding) {
  std::vector<CacheSpec> caches;
  for (const LayerSpec& layer : Layers(full, sliding)) caches.push_back(CacheOf(layer, {}));
  return SplitEqually(GroupByCache(caches));
}

TEST(FormGroups, OneGroupForEqualLayers) {
  std::vector<KvGroup> groups = FormGroups(std::vector<LayerSpec>(61, FullLayer()), {});
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].name, "full_attention");
  EXPECT_EQ(groups[0].layers.size(), 61u);
  ASSERT_EQ(groups[0].attention.size(), 1u);
  EXPECT_EQ(groups[0].attention[0].layers, groups[0].layers);
}

TEST(FormGroups, KeepsWindowAndFullApartInLayerOrder) {
  std::vector<LayerSpec> layers = {SlidingLayer(128), FullLayer(4, 2, 32), SlidingLayer(128)};
  std::vector<KvGroup> groups = FormGroups(layers, {});
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].name, "sliding_window");
  EXPECT_EQ(groups[0].window, 128);
  EXPECT_EQ(groups[0].layers, (std::vector<int>{0, 2}));
  EXPECT_EQ(groups[1].name, "full_attention");
  EXPECT_EQ(groups[1].index, 1);
}

TEST(FormGroups, NumbersGroupsOfOneKind) {
  std::vector<LayerSpec> layers = {SlidingLayer(128), SlidingLayer(256), FullLayer(),
                                   SlidingLayer(512), SlidingLayer(256)};
  std::vector<KvGroup> groups = FormGroups(layers, {});
  ASSERT_EQ(groups.size(), 4u);
  EXPECT_EQ(groups[0].name, "sliding_window");
  EXPECT_EQ(groups[1].name, "sliding_window-2");
  EXPECT_EQ(groups[1].layers, (std::vector<int>{1, 4}));
  EXPECT_EQ(groups[2].name, "full_attention");
  EXPECT_EQ(groups[3].name, "sliding_window-3");
}

TEST(FormGroups, GivesQueryHeadsTheirOwnAttentionGroup) {
  std::vector<LayerSpec> layers = {FullLayer(8, 2, 64), FullLayer(4, 2, 64), FullLayer(8, 2, 64)};
  std::vector<KvGroup> groups = FormGroups(layers, {});
  ASSERT_EQ(groups.size(), 1u);
  ASSERT_EQ(groups[0].attention.size(), 2u);
  EXPECT_EQ(groups[0].attention[0].layers, (std::vector<int>{0, 2}));
  EXPECT_EQ(groups[0].attention[1].layers, (std::vector<int>{1}));
  EXPECT_EQ(groups[0].attention[1].index, 1);
}

TEST(FormGroups, GivesSinksAndIndexersTheirOwnAttentionGroup) {
  std::vector<LayerSpec> layers(3, FullLayer());
  layers[1].sinks = true;
  layers[2].sparse = true;
  std::vector<KvGroup> groups = FormGroups(layers, {});
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].attention.size(), 3u);
}

TEST(FormGroups, IgnoresRopeAndScale) {
  std::vector<LayerSpec> layers(2, FullLayer());
  layers[1].rope = 1;
  layers[1].scale = 1;
  EXPECT_EQ(FormGroups(layers, {})[0].attention.size(), 1u);
}

TEST(FormGroups, OfNoLayersAreNone) { EXPECT_TRUE(FormGroups({}, {}).empty()); }

TEST(FormGroups, PutsEveryLayerInExactlyOneGroup) {
  uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 500; ++round) {
    std::vector<LayerSpec> layers(random() % 40);
    for (LayerSpec& layer : layers) {
      layer = random() % 2 ? FullLayer() : SlidingLayer(128 << (random() % 3));
      layer.kind = static_cast<KvKind>(random() % 9);
      layer.heads = layer.kv_heads * static_cast<int>(1 + random() % 3);
    }
    std::set<std::string> names;
    std::multiset<int> in_groups, in_attention;
    for (const KvGroup& group : FormGroups(layers, {})) {
      EXPECT_TRUE(names.insert(group.name).second) << group.name;
      EXPECT_TRUE(std::is_sorted(group.layers.begin(), group.layers.end()));
      in_groups.insert(group.layers.begin(), group.layers.end());
      std::multiset<int> members;
      for (const AttentionGroup& attention : group.attention) {
        members.insert(attention.layers.begin(), attention.layers.end());
        for (int layer : attention.layers) {
          EXPECT_EQ(layers[static_cast<size_t>(layer)].heads, attention.layer.heads);
          EXPECT_EQ(layers[static_cast<size_t>(layer)].kind, group.kind);
          if (NeedsRow(group.kind)) {
            EXPECT_EQ(layers[static_cast<size_t>(layer)].window, group.window);
          }
        }
      }
      EXPECT_EQ(members, std::multiset<int>(group.layers.begin(), group.layers.end()));
      in_attention.insert(members.begin(), members.end());
    }
    std::multiset<int> all;
    for (size_t i = 0; i < layers.size(); ++i) all.insert(static_cast<int>(i));
    ASSERT_EQ(in_groups, all);
    ASSERT_EQ(in_attention, all);
  }
}

TEST(SplitEqually, TenFullAndTwentySliding) {
  EqualSplit split = Split(10, 20);
  EXPECT_EQ(split.group_size, 10);
  EXPECT_EQ(split.groups.size(), 3u);
  EXPECT_EQ(split.pads, (std::vector<int>{0, 0, 0}));
}

TEST(SplitEqually, FillsStrided) {
  EqualSplit split = Split(2, 3);
  EXPECT_EQ(split.group_size, 2);
  EXPECT_EQ(split.groups, (std::vector<std::vector<int>>{{0, 1}, {2, 4}, {3}}));
  EXPECT_EQ(split.pads, (std::vector<int>{0, 0, 1}));
}

TEST(SplitEqually, PadsNearlyEqualBuckets) {
  EqualSplit split = Split(13, 12);
  EXPECT_EQ(split.group_size, 13);
  EXPECT_EQ(split.pads, (std::vector<int>{0, 1}));
  EXPECT_NEAR(split.wasted_percent[1], 8.33, 0.01);
}

TEST(SplitEqually, SplitsFromOneAndAHalfOn) {
  EqualSplit split = Split(20, 30);
  EXPECT_EQ(split.group_size, 20);
  ASSERT_EQ(split.groups.size(), 3u);
  EXPECT_EQ(split.groups[1].size(), 15u);
  EXPECT_EQ(split.groups[2].size(), 15u);
  EXPECT_NEAR(split.wasted_percent[1], 33.33, 0.01);
  EXPECT_EQ(Split(20, 29).group_size, 29);
}

TEST(SplitEqually, OneBucketStaysWhole) {
  EqualSplit split = Split(61, 0);
  EXPECT_EQ(split.groups.size(), 1u);
  EXPECT_EQ(split.pads, (std::vector<int>{0}));
}

TEST(SplitEqually, FortyEightStatesBesideSixteenFull) {
  std::vector<int> states(48), full(16);
  EqualSplit split = SplitEqually({states, full});
  EXPECT_EQ(split.group_size, 16);
  EXPECT_EQ(split.groups.size(), 4u);
}

TEST(SplitEqually, OfNothingIsNothing) { EXPECT_TRUE(SplitEqually({}).groups.empty()); }

}  // namespace
}  // namespace ashlar
