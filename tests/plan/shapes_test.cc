#include "plan/shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "plan/layout.h"
#include "support/plan_builders.h"

namespace ashlar {
namespace {

using testing::AnyRow;
using testing::BasicSpec;
using testing::CpuPlatform;
using testing::DenseModel;
using ::testing::ElementsAre;
using testing::Exact;
using ::testing::HasSubstr;
using testing::HybridModel;
using ::testing::IsEmpty;
using testing::Multiple;

Plan PlanOf(const ModelConfig& model, const Spec& spec, const Platform& platform) {
  Result<Plan> plan = MakePlan(spec, platform, model, {});
  if (!plan.ok()) ADD_FAILURE() << Text(plan.problems());
  return plan.ok() ? std::move(*plan) : Plan{};
}

Plan HybridPlan(const std::string& layout = "auto") {
  Spec spec = BasicSpec();
  spec.kv.layout = layout;
  spec.kv.memory.bytes = 8 << 20;
  return PlanOf(HybridModel(), spec, CpuPlatform());
}

// Views as an arena has them that was laid out as planned; kernel blocks are whole blocks.
std::vector<AllocatedView> ViewsOf(const Plan& plan) {
  std::vector<AllocatedView> views;
  for (const KvGroup& group : plan.groups) {
    for (size_t slot = 0; slot < group.layers.size(); ++slot) {
      AllocatedView view;
      view.group = group.index;
      view.layer_slot = static_cast<int>(slot);
      view.allocation_bytes = plan.memory.kv_bytes;
      view.base_offset = group.offset + static_cast<int64_t>(slot) * group.strides[kDimL];
      view.block_stride = group.strides[kDimB];
      view.head_stride = group.strides[kDimH];
      view.token_stride = group.strides[kDimN];
      view.blocks = group.blocks;
      view.block_tokens = group.kernel_block_tokens;
      view.content_bytes = group.content_bytes;
      view.head_slots = group.head_slots;
      views.push_back(view);
    }
  }
  return views;
}

std::string ProblemsOf(const Plan& plan, const std::vector<AllocatedView>& views) {
  return Text(CheckAllocatedViews(plan, CpuPlatform().rows, views));
}

TEST(Declare, IsHeadsTokensAndContent) {
  LayerSpec layer = testing::FullLayer(8, 2, 128);
  DeclaredShape dense = Declare(AnyRow("A"), layer, 16, DType::kBF16);
  EXPECT_EQ(dense.head_slots, 2);
  EXPECT_EQ(dense.states, 16);
  EXPECT_EQ(dense.content_bytes, 512);

  layer.kv_heads = 4;  // K and V planes: the same bytes over two slots
  AttentionRow planes = AnyRow("PLANES");
  planes.head_slots = 2;
  EXPECT_EQ(Declare(planes, layer, 16, DType::kBF16).head_slots, 2);
  EXPECT_EQ(Declare(planes, layer, 16, DType::kBF16).content_bytes, 1024);

  AttentionRow latent = AnyRow("LATENT");
  latent.mla = true;
  layer.head_dim = 576;
  EXPECT_EQ(Declare(latent, layer, 64, DType::kBF16).head_slots, 1);
  EXPECT_EQ(Declare(latent, layer, 64, DType::kBF16).content_bytes, 1152);
}

TEST(Declare, OfSparseLatentAttentionHoldsTheIndexersKeys) {
  LayerSpec layer = testing::FullLayer(128, 1, 576);
  layer.sparse = true;
  layer.indexer_bytes = 132;
  AttentionRow row = AnyRow("SPARSE");
  row.mla = row.sparse = true;
  EXPECT_EQ(Declare(row, layer, 64, DType::kBF16).content_bytes, 1152 + 132);
  EXPECT_EQ(DeclareLatentOps(layer, 64, DType::kBF16).content_bytes, 1152 + 132);
  row.sparse = false;  // reads the latent alone
  EXPECT_EQ(Declare(row, layer, 64, DType::kBF16).content_bytes, 1152);
}

TEST(DeclaredShapes, AgreeForASoundPlan) {
  EXPECT_THAT(CheckDeclaredShapes(HybridPlan(), CpuPlatform().rows), IsEmpty());
}

TEST(DeclaredShapes, CatchARowWithKAndVOutermost) {
  Plan plan = HybridPlan();
  std::vector<AttentionRow> rows = CpuPlatform().rows;
  rows.push_back(AnyRow("SCRATCH"));
  rows.back().head_slots = 1;  // the same bytes, in other dimensions
  plan.groups[1].attention[0].row = "SCRATCH";
  EXPECT_EQ(Text(CheckDeclaredShapes(plan, rows)),
            "group full_attention attn 0: SCRATCH declares [1, 32, 256] in planes of its own: the "
            "cache holds [2, 32, "
            "128] [heads, tokens, bytes] a kernel block; report this: the backend's row does not "
            "describe its kernel");
}

TEST(DeclaredShapes, CatchAHalvedHeadSizeInTheSpecOnly) {
  Plan plan = HybridPlan();
  plan.groups[0].content_bytes /= 2;
  plan.groups[0].page_bytes /= 2;
  Problems problems = CheckDeclaredShapes(plan, CpuPlatform().rows);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_THAT(problems[0].Text(), HasSubstr("CPU_WINDOW declares [2, 32, 128]: the cache holds "
                                            "[2, 32, 64]"));
  EXPECT_THAT(problems[1].Text(), HasSubstr("8192 bytes a block: the cache holds 4096 bytes"));
}

TEST(DeclaredShapes, CatchARowThatIsNotThere) {
  EXPECT_THAT(Text(CheckDeclaredShapes(HybridPlan(), {})),
              HasSubstr("backend \"CPU_WINDOW\" declares no shape"));
}

// The call in MakePlan: rows that pass selection and lie about their shape.
TEST(MakePlan, RefusesARowThatDeclaresAnotherShape) {
  Platform platform = CpuPlatform();
  platform.rows[0].head_slots = 1;
  PlanAttempt attempt = TryPlan(BasicSpec(), platform, DenseModel(), {});
  EXPECT_EQ(attempt.check, "shapes");
  EXPECT_EQ(Text(attempt.problems),
            "group full_attention attn 0: CPU_PAGED declares [1, 32, 768] in planes of its own: "
            "the cache holds [3, 32, "
            "256] [heads, tokens, bytes] a kernel block; report this: the backend's row does not "
            "describe its kernel");
}

TEST(MakePlan, RefusesAScratchRowThatIsTriedFirst) {  // SV-15
  Platform platform = CpuPlatform();
  platform.rows.push_back(AnyRow("SCRATCH"));
  platform.rows.back().head_slots = 1;
  Spec spec = BasicSpec();
  spec.backends["default"].prefer = {"SCRATCH"};
  PlanAttempt attempt = TryPlan(spec, platform, DenseModel(), {});
  EXPECT_EQ(attempt.check, "shapes");
  EXPECT_THAT(Text(attempt.problems),
              ::testing::StartsWith("group full_attention attn 0: SCRATCH declares [1, 16, 768] in "
                                    "planes of its own: the cache holds [3, 16, 256] "));
}

TEST(AllocatedViews, AgreeInEveryLayout) {
  for (const char* layout : {"LBHNC", "LBNHC", "LHBNC", "BLHNC", "BLNHC", "BHLNC"}) {
    Plan plan = HybridPlan(layout);
    EXPECT_EQ(Name(plan.layout), layout);
    EXPECT_EQ(ProblemsOf(plan, ViewsOf(plan)), "") << layout;
  }
}

struct Mutation {
  const char* name;
  std::function<void(std::vector<AllocatedView>&)> apply;
  const char* message;
};

TEST(AllocatedViews, EveryMutationIsCaught) {
  const Mutation mutations[] = {
      {"block stride by one", [](auto& v) { v[2].block_stride += 1; },
       "block stride is 8193: 8192"},
      {"head stride", [](auto& v) { v[0].head_stride -= 1; }, "head stride is 4095: 4096"},
      {"token stride", [](auto& v) { v[0].token_stride *= 2; }, "token stride is 256: 128"},
      {"base", [](auto& v) { v[5].base_offset += 64; }, "base is"},
      {"negative base", [](auto& v) { v[0].base_offset = -64; }, "base is -64: 0"},
      {"one block more", [](auto& v) { v[5].blocks += 1; }, "the view ends at byte"},
      {"a smaller allocation", [](auto& v) { v[5].allocation_bytes -= 1; },
       "the view ends at byte"},
      {"half the content", [](auto& v) { v[0].content_bytes /= 2; },
       "slot 0: bytes a token is 64: 128"},
      {"half the content, by the row", [](auto& v) { v[0].content_bytes /= 2; },
       "slot 0: CPU_WINDOW's bytes a token is 64: 128"},
      {"heads", [](auto& v) { v[0].head_slots = 4; }, "slot 0: head slots is 4: 2"},
      {"heads, by the row", [](auto& v) { v[0].head_slots = 4; },
       "slot 0: CPU_WINDOW's head slots is 4: 2"},
      {"fewer blocks", [](auto& v) { v[0].blocks -= 1; }, "slot 0: blocks is"},
      {"another kernel block that the row takes", [](auto& v) { v[0].block_tokens = 16; },
       "slot 0: kernel block is 16: 32"},
      {"kernel block", [](auto& v) { v[0].block_tokens = 24; },
       "kernel blocks of 24 tokens: CPU_WINDOW takes a multiple of 16"},
      {"layer twice", [](auto& v) { v[1].base_offset = v[0].base_offset; },
       "group sliding_window: its blocks overlap"},
      {"blocks inside each other",
       [](auto& v) {
         for (auto& w : v) w.block_stride -= 64;
       },
       "its blocks overlap"},
      {"pool over pool", [](auto& v) { v[5].base_offset = v[4].base_offset; },
       "groups sliding_window and full_attention: their pools overlap"},
      {"a missing view", [](auto& v) { v.pop_back(); },
       "group full_attention layer slot 0: 0 views: 1"},
      {"a view too many",
       [](auto& v) {
         v.push_back(v[0]);
         v.back().layer_slot = 9;
       },
       "group 0 layer slot 9: a view of nothing that was planned"},
      {"a group too many",
       [](auto& v) {
         v.push_back(v[0]);
         v.back().group = 7;
       },
       "group 7 layer slot 0: a view of nothing that was planned"},
  };
  Plan plan = HybridPlan("LBHNC");
  for (const Mutation& mutation : mutations) {
    SCOPED_TRACE(mutation.name);
    std::vector<AllocatedView> views = ViewsOf(plan);
    mutation.apply(views);
    EXPECT_THAT(ProblemsOf(plan, views), HasSubstr(mutation.message));
  }
}

TEST(AllocatedViews, CatchASpecThatChangedAlone) {
  Plan plan = HybridPlan();
  std::vector<AllocatedView> views = ViewsOf(plan);
  plan.groups[0].content_bytes /= 2;
  plan.groups[0].page_bytes /= 2;
  EXPECT_THAT(ProblemsOf(plan, views), HasSubstr("bytes a token is 128: 64"));
}

TEST(AllocatedViews, CatchABackendThatChangedAlone) {
  Plan plan = HybridPlan();
  std::vector<AttentionRow> rows = CpuPlatform().rows;
  rows[1].head_slots = 1;  // CPU_WINDOW
  rows[0].kernel_blocks = {Exact(64)};
  std::string problems = Text(CheckAllocatedViews(plan, rows, ViewsOf(plan)));
  EXPECT_THAT(problems, HasSubstr("CPU_WINDOW's head slots is 2: 1"));
  EXPECT_THAT(problems, HasSubstr("kernel blocks of 32 tokens: CPU_PAGED takes 64"));
}

// A manager block in several kernel blocks: strides are those of the kernel blocks.
TEST(AllocatedViews, OfSplitBlocks) {
  Platform platform = CpuPlatform();
  platform.rows[0].kernel_blocks = {Exact(16), Exact(32)};
  Spec spec = BasicSpec();
  spec.kv.block_size = 64;
  Plan plan = PlanOf(DenseModel(), spec, platform);
  const KvGroup& group = plan.groups[0];
  ASSERT_EQ(group.kernel_block_tokens, 32);
  std::vector<AllocatedView> views = ViewsOf(plan);
  for (AllocatedView& view : views) {
    view.block_stride /= 2;
    view.head_stride /= 2;
    view.blocks *= 2;
  }
  EXPECT_EQ(Text(CheckAllocatedViews(plan, platform.rows, views)), "");
  views[3].head_stride *= 2;
  EXPECT_THAT(Text(CheckAllocatedViews(plan, platform.rows, views)), HasSubstr("head stride"));
}

}  // namespace
}  // namespace ashlar
