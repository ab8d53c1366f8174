#include "plan/layout.h"

#include <gtest/gtest.h>

#include "support/plan_builders.h"

namespace ashlar {
namespace {

using testing::AnyRow;

struct LayoutCase {
  KvLayout layout;
  KvStrides strides;
  PageRuns runs;
  int64_t byte;  // of layer 1, block 2, head 1, token 3
};

TEST(Strides, OfTheSixLayouts) {
  const KvExtents extents = {3, 8, 4, 16, 128};
  const LayoutCase cases[] = {
      {KvLayout::kLBHNC, {65536, 8192, 2048, 128, 1}, {1, 8192}, 84352},
      {KvLayout::kLBNHC, {65536, 8192, 128, 512, 1}, {1, 8192}, 83584},
      {KvLayout::kLHBNC, {65536, 2048, 16384, 128, 1}, {4, 2048}, 86400},
      {KvLayout::kBLHNC, {8192, 24576, 2048, 128, 1}, {1, 8192}, 59776},
      {KvLayout::kBLNHC, {8192, 24576, 128, 512, 1}, {1, 8192}, 59008},
      {KvLayout::kBHLNC, {2048, 24576, 6144, 128, 1}, {4, 2048}, 57728},
  };
  for (const LayoutCase& expected : cases) {
    SCOPED_TRACE(Name(expected.layout));
    std::optional<KvStrides> strides = StridesOf(expected.layout, extents);
    ASSERT_TRUE(strides);
    EXPECT_EQ(*strides, expected.strides);
    EXPECT_EQ(RunsOf(*strides, extents), expected.runs);
    EXPECT_EQ((*strides)[0] + 2 * (*strides)[1] + (*strides)[2] + 3 * (*strides)[3], expected.byte);
  }
}

TEST(Strides, OfOneHeadMakeOneRun) {
  const KvExtents extents = {3, 8, 1, 16, 1152};
  EXPECT_EQ((*StridesOf(KvLayout::kLBHNC, extents))[0], 147456);
  EXPECT_EQ((*StridesOf(KvLayout::kLBHNC, extents))[1], 18432);
  EXPECT_EQ((*StridesOf(KvLayout::kLBNHC, extents))[1], 18432);
  EXPECT_EQ((*StridesOf(KvLayout::kLHBNC, extents))[1], 18432);
  for (KvLayout layout : {KvLayout::kBLHNC, KvLayout::kBLNHC, KvLayout::kBHLNC}) {
    EXPECT_EQ((*StridesOf(layout, extents))[0], 18432);
    EXPECT_EQ((*StridesOf(layout, extents))[1], 55296);
  }
  for (const LayoutInfo& info : kLayouts)
    EXPECT_EQ(RunsOf(*StridesOf(info.layout, extents), extents), (PageRuns{1, 18432}));
}

TEST(Strides, OfKAndVPlanes) {
  const KvExtents extents = {2, 10, 2, 16, 512};
  EXPECT_EQ(*StridesOf(KvLayout::kLBHNC, extents), (KvStrides{163840, 16384, 8192, 512, 1}));
  EXPECT_EQ(*StridesOf(KvLayout::kLBNHC, extents), (KvStrides{163840, 16384, 512, 1024, 1}));
  EXPECT_EQ(*StridesOf(KvLayout::kLHBNC, extents), (KvStrides{163840, 8192, 81920, 512, 1}));
  EXPECT_EQ(*StridesOf(KvLayout::kBLHNC, extents), (KvStrides{16384, 32768, 8192, 512, 1}));
  EXPECT_EQ(*StridesOf(KvLayout::kBLNHC, extents), (KvStrides{16384, 32768, 512, 1024, 1}));
  EXPECT_EQ(*StridesOf(KvLayout::kBHLNC, extents), (KvStrides{8192, 32768, 16384, 512, 1}));
  for (KvLayout split : {KvLayout::kLHBNC, KvLayout::kBHLNC})
    EXPECT_EQ(RunsOf(*StridesOf(split, extents), extents), (PageRuns{2, 8192}));
}

TEST(Strides, OfPaddedPages) {
  const KvExtents extents = {3, 8, 4, 16, 128};
  EXPECT_EQ(*StridesOf(KvLayout::kLBHNC, extents, 9000), (KvStrides{72000, 9000, 2048, 128, 1}));
  EXPECT_EQ(*StridesOf(KvLayout::kBLNHC, extents, 9000), (KvStrides{9000, 27000, 128, 512, 1}));
  EXPECT_FALSE(StridesOf(KvLayout::kLBHNC, extents, 8000));  // smaller than the page
  EXPECT_FALSE(StridesOf(KvLayout::kLHBNC, extents, 9000));  // a page in pieces has no end
  EXPECT_FALSE(StridesOf(KvLayout::kBHLNC, extents, 9000));
  // One head leaves nothing of the page outside its end.
  EXPECT_EQ(*StridesOf(KvLayout::kLHBNC, {3, 8, 1, 16, 128}, 2304),
            (KvStrides{18432, 2304, 18432, 128, 1}));
}

TEST(Strides, ThatAreFixedStand) {
  EXPECT_EQ(*StridesOf(KvLayout::kLBNHC, {3, 8, 4, 16, 128}, 0, {0, 8448, 0, 0, 0}),
            (KvStrides{67584, 8448, 128, 512, 1}));
}

TEST(Strides, RefuseWhatDoesNotFit) {
  EXPECT_FALSE(StridesOf(KvLayout::kLBHNC, {1 << 20, int64_t{1} << 40, 8, 16, 512}));
}

TEST(Layouts, HaveTheirShape) {
  struct Shape {
    KvLayout layout;
    bool layer_compact, block_outermost, block_compact;
  };
  const Shape shapes[] = {
      {KvLayout::kLBHNC, true, false, true},  {KvLayout::kLBNHC, true, false, true},
      {KvLayout::kLHBNC, true, false, false}, {KvLayout::kBLHNC, false, true, true},
      {KvLayout::kBLNHC, false, true, true},  {KvLayout::kBHLNC, false, true, false}};
  for (const Shape& shape : shapes) {
    SCOPED_TRACE(Name(shape.layout));
    EXPECT_EQ(LayerCompact(shape.layout), shape.layer_compact);
    EXPECT_EQ(BlockOutermost(shape.layout), shape.block_outermost);
    EXPECT_EQ(BlockCompact(shape.layout), shape.block_compact);
    // The name says the order.
    std::string name;
    for (KvDim dim : Info(shape.layout).order) name += "LBHNC"[dim];
    EXPECT_EQ(name, Name(shape.layout));
  }
}

TEST(Splittable, OnlyWhereBlocksFollowEachOther) {  // BV-34, BV-35
  const KvExtents extents = {3, 8, 4, 128, 128};
  EXPECT_TRUE(Splittable(KvLayout::kLBNHC, extents));
  EXPECT_TRUE(Splittable(KvLayout::kLBHNC, extents));
  EXPECT_FALSE(Splittable(KvLayout::kBLHNC, extents));
  EXPECT_FALSE(Splittable(KvLayout::kLHBNC, extents));
  EXPECT_FALSE(Splittable(KvLayout::kLBNHC, extents, 70'000));
}

TEST(UnstatedLayout, IsTakenForPagesOfOneRunOnly) {
  const KvExtents extents = {3, 8, 4, 16, 128};
  for (const LayoutInfo& info : kLayouts) {
    StatedPages pages{"full_attention", extents, *StridesOf(info.layout, extents)};
    EXPECT_EQ(CheckUnstatedLayout({pages}, "peer").empty(), BlockCompact(info.layout));
    pages.extents[kDimH] = 1;  // MLA: one head is one run in every layout
    pages.strides = *StridesOf(info.layout, pages.extents);
    EXPECT_TRUE(CheckUnstatedLayout({pages}, "peer").empty());
  }
  EXPECT_EQ(Text(CheckUnstatedLayout(
                {{"full_attention", extents, *StridesOf(KvLayout::kBHLNC, extents)}}, "peer")),
            "peer: no layout is stated, and a block of group full_attention lies in 4 pieces "
            "(strides 2048, 24576, 6144, 128, 1): a layout, or blocks of one piece; state layout: "
            "LHBNC or BHLNC");
}

// Resolution among rows that take these layouts; an empty list takes any.
class Lists {
 public:
  explicit Lists(std::vector<std::vector<KvLayout>> lists) {
    for (size_t i = 0; i < lists.size(); ++i) {
      rows_.push_back(AnyRow(std::string(1, static_cast<char>('A' + i))));
      rows_.back().layouts = lists[i];
    }
  }
  std::string Resolve(bool uniform = true, std::optional<KvLayout> asked = {}) const {
    std::vector<const AttentionRow*> rows;
    for (const AttentionRow& row : rows_) rows.push_back(&row);
    Result<LayoutChoice> choice = ResolveLayout(rows, uniform, asked, "kv.layout");
    return choice.ok() ? std::string(Name(choice->layout)) : Text(choice.problems());
  }

 private:
  std::vector<AttentionRow> rows_;
};

constexpr KvLayout LBHNC = KvLayout::kLBHNC, LBNHC = KvLayout::kLBNHC, LHBNC = KvLayout::kLHBNC,
                   BLHNC = KvLayout::kBLHNC, BLNHC = KvLayout::kBLNHC, BHLNC = KvLayout::kBHLNC;
const std::vector<KvLayout> kTriton = {LBNHC, LBHNC, BLNHC, BLHNC, BHLNC, LHBNC};

TEST(ResolveLayout, MixedPagesNeedBlockCompact) {
  EXPECT_EQ(Lists({{LHBNC, LBNHC}}).Resolve(false), "LBNHC");
  EXPECT_EQ(Lists({{LHBNC}}).Resolve(false),
            "kv.layout: LHBNC is not usable: groups whose blocks differ need a block-compact "
            "layout: A takes LHBNC; choose backends that take LBHNC, LBNHC, BLHNC or BLNHC");
}

TEST(ResolveLayout, UniformPagesKeepTheFirst) {
  EXPECT_EQ(Lists({{LHBNC, LBNHC}}).Resolve(), "LHBNC");
}

TEST(ResolveLayout, OneRowWithOneLayoutDecides) {
  EXPECT_EQ(Lists({{LHBNC}, kTriton}).Resolve(), "LHBNC");
  EXPECT_EQ(Lists({{LBHNC}, kTriton}).Resolve(), "LBHNC");
  EXPECT_EQ(Lists({kTriton, {LBHNC}}).Resolve(), "LBHNC");
}

TEST(ResolveLayout, ACommonSetIsRankedByFirstPlaces) {
  EXPECT_EQ(Lists({{BLHNC, BLNHC}, kTriton}).Resolve(), "BLHNC");
  EXPECT_EQ(Lists({{LBHNC, BLHNC}}).Resolve(), "LBHNC");
  EXPECT_EQ(Lists({{BLHNC, LBHNC}, {LBHNC, BLHNC}}).Resolve(), "LBHNC");  // a tie, by the enum
  EXPECT_EQ(Lists({{BLHNC, LBHNC}, {LBHNC, BLHNC}, {BLHNC, LBHNC, LBNHC}}).Resolve(), "BLHNC");
}

TEST(ResolveLayout, ThoseWhoTakeAnyDoNotVote) {
  const std::vector<std::vector<KvLayout>> kAny(1), kNone;
  EXPECT_EQ(Lists({{}, {LHBNC}}).Resolve(), "LHBNC");
  EXPECT_EQ(Lists(kAny).Resolve(), "LBNHC");
  EXPECT_EQ(Lists(kNone).Resolve(), "LBNHC");
}

TEST(ResolveLayout, AnExplicitOneMustBeACandidate) {
  EXPECT_EQ(Lists({{LBNHC, LBHNC}}).Resolve(true, LBHNC), "LBHNC");
  EXPECT_EQ(Lists({{LBNHC, LBHNC}}).Resolve(true, BLHNC),
            "kv.layout: BLHNC is not usable: A takes LBNHC or LBHNC; use LBNHC or LBHNC");
  EXPECT_EQ(Lists({{LBHNC}}).Resolve(true, LHBNC),
            "kv.layout: LHBNC is not usable: A takes LBHNC; use LBHNC");
  EXPECT_EQ(Lists({{LHBNC, LBNHC}}).Resolve(false, LHBNC),
            "kv.layout: LHBNC is not usable: groups whose blocks differ need a block-compact "
            "layout; use LBNHC");
}

TEST(ResolveLayout, NothingInCommonNamesEverySet) {
  EXPECT_EQ(Lists({{LBNHC}, {LHBNC, BHLNC}}).Resolve(),
            "kv.layout: the backends have no KV cache layout in common: A takes LBNHC, B takes "
            "LHBNC or BHLNC; choose other backends");
}

TEST(PlaceGroups, PutsPoolsOneAfterTheOther) {
  std::vector<KvGroup> groups(2);
  for (KvGroup& group : groups) {
    group.layers = {0, 1, 2};
    group.block_tokens = group.kernel_block_tokens = 16;
    group.head_slots = 4;
    group.states = 16;
    group.content_bytes = 10;
    group.page_bytes = 640;
    group.blocks = 5;
  }
  groups[0].content_bytes = 7;  // 3 layers x 5 blocks x 448 bytes
  groups[0].page_bytes = 448;
  EXPECT_EQ(PlaceGroups(groups, KvLayout::kLBHNC), 6720 + 9600);
  EXPECT_EQ(groups[0].offset, 0);
  EXPECT_EQ(groups[1].offset, 6720);
  EXPECT_EQ(groups[1].strides, (KvStrides{3200, 640, 160, 10, 1}));
  groups[0].head_slots = 3;  // 3 layers x 5 blocks x 336 bytes
  groups[0].page_bytes = 336;
  EXPECT_EQ(PlaceGroups(groups, KvLayout::kLBHNC), 5056 + 9600);
  EXPECT_EQ(groups[1].offset, 5056);
}

}  // namespace
}  // namespace ashlar
