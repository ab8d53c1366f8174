#include "kv/arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "support/toy_model_plan.h"

namespace ashlar {
namespace {

toy::Shape TwoGroups(KvLayout layout) {
  toy::Shape shape;
  shape.layout = layout;
  shape.groups = {{KvKind::kFull, 0, 2, 16, 0, 5}, {KvKind::kSliding, 20, 3, 8, 0, 7}};
  return shape;
}

TEST(KvArena, AcceptsEveryLayoutAsPlanned) {
  auto device = toy::OpenReference();
  for (const LayoutInfo& info : kLayouts) {
    Plan plan = toy::MakePlan(TwoGroups(info.layout));
    auto arena = toy::MakeArena(plan, *device);
    EXPECT_TRUE(arena.ok()) << Name(info.layout) << "\n" << Text(arena.problems());
  }
}

TEST(KvArena, AcceptsSplitBlocks) {
  auto device = toy::OpenReference();
  for (KvLayout layout : {KvLayout::kLBHNC, KvLayout::kLBNHC, KvLayout::kLHBNC}) {
    for (int heads : {1, 2}) {
      toy::Shape shape = TwoGroups(layout);
      shape.kv_heads = heads;
      shape.groups[0].block_tokens = 64;
      shape.groups[0].kernel_block_tokens = 16;
      auto arena = toy::MakeArena(toy::MakePlan(shape), *device);
      ASSERT_TRUE(arena.ok()) << Name(layout) << "\n" << Text(arena.problems());
      EXPECT_EQ((*arena)->layers()[0].view.blocks, 6 * 4);
      EXPECT_EQ((*arena)->layers()[0].view.block_tokens, 16);
    }
  }
}

// Writes a mark of its own at every (layer, block, head, token) and then reads all of them.
TEST(KvArena, NoTwoEntriesShareAByte) {
  auto device = toy::OpenReference();
  for (const LayoutInfo& info : kLayouts) {
    Plan plan = toy::MakePlan(TwoGroups(info.layout));
    auto arena = std::move(*toy::MakeArena(plan, *device));
    for (bool write : {true, false}) {
      uint64_t mark = 0;
      for (const LayerKv& layer : arena->layers()) {
        const ashlar_kv_view& view = layer.view;
        for (int64_t b = 0; b < view.blocks; ++b) {
          for (int64_t h = 0; h < view.kv_heads; ++h) {
            for (int64_t n = 0; n < view.block_tokens; ++n) {
              auto* entry = static_cast<std::byte*>(view.base) + b * view.block_stride +
                            h * view.head_stride + n * view.token_stride;
              ++mark;
              if (write) std::memcpy(entry, &mark, sizeof mark);
              ASSERT_EQ(std::memcmp(entry, &mark, sizeof mark), 0) << Name(info.layout);
            }
          }
        }
      }
      EXPECT_EQ(static_cast<int64_t>(mark * sizeof mark), arena->bytes()) << Name(info.layout);
    }
  }
}

// Create refuses what its own check finds: a plan whose strides are not those of its layout gives a
// wrong allocation, and no arena.
TEST(KvArena, RefusesStridesThatAreNotTheLayouts) {
  auto device = toy::OpenReference();
  for (int axis = 0; axis < 4; ++axis) {
    Plan plan = toy::MakePlan(TwoGroups(KvLayout::kLBHNC));
    plan.groups[0].strides[axis] += 8;
    auto arena = toy::MakeArena(plan, *device);
    ASSERT_FALSE(arena.ok()) << "axis " << axis;
    EXPECT_THAT(Text(arena.problems()), testing::HasSubstr("group full_attention"));
  }
}

TEST(KvArena, RefusesPoolsThatOverlap) {
  auto device = toy::OpenReference();
  Plan plan = toy::MakePlan(TwoGroups(KvLayout::kLBHNC));
  plan.groups[1].offset -= 64;
  auto arena = toy::MakeArena(plan, *device);
  ASSERT_FALSE(arena.ok());
  EXPECT_THAT(Text(arena.problems()), testing::HasSubstr("overlap"));
}

TEST(KvArena, RefusesAHeadSizeThatTheSpecAloneHalved) {
  auto device = toy::OpenReference();
  Plan plan = toy::MakePlan(TwoGroups(KvLayout::kLBHNC));
  plan.groups[0].attention[0].layer.head_dim_v = 2;
  EXPECT_FALSE(toy::MakeArena(plan, *device).ok());
}

TEST(KvArena, NamesARowThatThePluginLacks) {
  auto device = toy::OpenReference();
  Plan plan = toy::MakePlan(TwoGroups(KvLayout::kLBHNC));
  plan.groups[1].attention[0].row = "CPU_WINDOW";
  auto arena = toy::MakeArena(plan, *device);
  ASSERT_FALSE(arena.ok());
  EXPECT_THAT(Text(arena.problems()), testing::HasSubstr("no row CPU_WINDOW"));
}

// Each number of V comes from the view that a kernel gets: changing any one of them reddens the
// check.
TEST(KvArena, EveryNumberOfAViewIsChecked) {
  auto device = toy::OpenReference();
  Plan plan = toy::MakePlan(TwoGroups(KvLayout::kLBHNC));
  auto arena = std::move(*toy::MakeArena(plan, *device));
  const auto& rows = device->plugin().rows();
  const std::vector<AllocatedView> good = arena->Views();
  ASSERT_EQ(Text(CheckAllocatedViews(plan, rows, good)), "");
  using Mutation = void (*)(AllocatedView&);
  const Mutation mutations[] = {[](AllocatedView& v) { v.base_offset += 8; },
                                [](AllocatedView& v) { v.block_stride += 8; },
                                [](AllocatedView& v) { v.head_stride += 8; },
                                [](AllocatedView& v) { v.token_stride += 8; },
                                [](AllocatedView& v) { v.blocks += 1; },
                                [](AllocatedView& v) { v.block_tokens *= 2; },
                                [](AllocatedView& v) { v.content_bytes /= 2; },
                                [](AllocatedView& v) { v.head_slots = 1; },
                                [](AllocatedView& v) { v.layer_slot = 1; },
                                [](AllocatedView& v) { v.group = 1; },
                                [](AllocatedView& v) { v.allocation_bytes = 64; }};
  for (size_t i = 0; i < std::size(mutations); ++i) {
    std::vector<AllocatedView> views = good;
    mutations[i](views[0]);
    EXPECT_FALSE(CheckAllocatedViews(plan, rows, views).empty()) << "mutation " << i;
  }
}

}  // namespace
}  // namespace ashlar
