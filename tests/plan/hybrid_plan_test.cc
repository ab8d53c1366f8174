// Plans of models whose layers are not all attention over K and V.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/layout.h"
#include "plan/plan.h"
#include "plan/shapes.h"
#include "support/plan_builders.h"

namespace ashlar {
namespace {

using testing::AnyRow;
using testing::BasicSpec;
using testing::CpuPlatform;
using testing::DenseModel;
using testing::Exact;
using testing::ExactManagerRow;
using testing::FullLayer;
using ::testing::HasSubstr;
using testing::HybridModel;
using ::testing::IsEmpty;
using testing::Multiple;
using testing::Placed;

// Qwen3-Next: k16 v32 d128, kernel 4.
LayerSpec GatedDelta() {
  LayerSpec layer;
  layer.kind = KvKind::kMamba;
  layer.states = {{{3, 8192}, DType::kBF16}, {{32, 128, 128}, DType::kBF16}};
  return layer;
}

LayerSpec Latent(int kv_heads = 1) {
  LayerSpec layer = FullLayer(16, kv_heads, 576);
  layer.kind = KvKind::kMla;
  layer.head_dim_v = 0;
  return layer;
}

ModelConfig ModelOf(std::vector<LayerSpec> layers) {
  ModelConfig model = DenseModel();
  model.layers = std::move(layers);
  model.context_length = 4096;
  return model;
}

// Attention of 2 KiB a token.
ModelConfig GatedModel() {
  std::vector<LayerSpec> layers;
  for (int i = 0; i < 8; ++i) layers.push_back(i % 4 == 3 ? FullLayer(16, 2, 256) : GatedDelta());
  return ModelOf(std::move(layers));
}

Platform PlatformOf(std::vector<AttentionRow> rows) {
  Platform platform = CpuPlatform();
  platform.rows = std::move(rows);
  return platform;
}

Plan Made(const Spec& spec, const Platform& platform, const ModelConfig& model) {
  Result<Plan> plan = MakePlan(spec, platform, model, {});
  if (!plan.ok()) ADD_FAILURE() << Text(plan.problems());
  return plan.ok() ? std::move(*plan) : Plan{};
}

std::string Refusal(const Spec& spec, const Platform& platform, const ModelConfig& model) {
  Result<Plan> plan = MakePlan(spec, platform, model, {});
  return plan.ok() ? "" : Text(plan.problems());
}

Spec SmallSpec() {
  Spec spec = BasicSpec();
  spec.limits.sequences = 2;
  spec.limits.batch_tokens = 256;
  return spec;
}

TEST(HybridPlan, AlignsTheBlockToTheState) {  // BV-22
  Plan plan = Made(SmallSpec(), PlatformOf({AnyRow("A")}), GatedModel());
  ASSERT_EQ(plan.groups.size(), 2u);
  const KvGroup& state = plan.groups[0];
  const KvGroup& attention = plan.groups[1];
  EXPECT_EQ(state.name, "mamba");
  EXPECT_EQ(state.attention[0].row, "");
  EXPECT_EQ(state.attention[0].reason, "recurrent state: no attention backend");
  EXPECT_EQ(state.page_bytes, 1'114'112);
  EXPECT_EQ(state.content_bytes, 1'097'728);
  EXPECT_EQ(state.block_tokens, 544);
  EXPECT_EQ(attention.block_tokens, 544);
  EXPECT_EQ(attention.kernel_block_tokens, 544);
  EXPECT_EQ(attention.page_bytes, 1'114'112);
  ASSERT_EQ(attention.block_steps.size(), 4u);
  EXPECT_EQ(attention.block_steps[1].tokens, 16);
  EXPECT_EQ(attention.block_steps[2].stage, "align");
  EXPECT_EQ(attention.block_steps[2].tokens, 544);
  EXPECT_THAT(attention.block_steps[2].reason, HasSubstr("a block takes as much as a state"));
  EXPECT_EQ(plan.cache_block_tokens, 544);
  EXPECT_EQ(plan.hash_block_tokens, 544);
  EXPECT_EQ(plan.selector_calls, 1);
  EXPECT_TRUE(BlockCompact(plan.layout));
  EXPECT_EQ(state.strides[kDimB] % 1'114'112, 0);
}

TEST(HybridPlan, DoesNotAskWhereTheAttentionLayersStand) {  // BV-36
  ModelConfig model = GatedModel();
  std::reverse(model.layers.begin(), model.layers.end());
  Plan plan = Made(SmallSpec(), PlatformOf({AnyRow("A")}), model);
  for (const KvGroup& group : plan.groups) EXPECT_EQ(group.block_tokens, 544);
}

TEST(HybridPlan, SplitsTheAlignedBlock) {  // BV-23
  Plan plan =
      Made(SmallSpec(), PlatformOf({AnyRow("A", {Exact(16), Exact(32), Exact(64)})}), GatedModel());
  EXPECT_EQ(plan.groups[1].block_tokens, 544);
  EXPECT_EQ(plan.groups[1].kernel_block_tokens, 32);
  EXPECT_EQ(plan.groups[0].kernel_block_tokens, 544);  // a state has no kernel block
}

TEST(HybridPlan, SaysWhatBecomesOfTheUsersSize) {  // BV-25, BV-26
  Spec spec = Placed(SmallSpec(), "kv.blockSize", 3, 4);
  spec.kv.block_size = 64;
  Plan plan = Made(spec, PlatformOf({AnyRow("A")}), GatedModel());
  EXPECT_EQ(plan.groups[1].block_tokens, 576);
  EXPECT_THAT(plan.notes, ::testing::Contains(::testing::StartsWith(
                              "model.yaml:3:4 kv.blockSize: 64 becomes 576: a block takes")));
  spec.kv.block_size = 32;
  EXPECT_THAT(Made(spec, PlatformOf({AnyRow("A")}), GatedModel()).notes,
              ::testing::Contains(HasSubstr("32 becomes 544, as without it: ")));
  spec.kv.block_size = 2048;
  plan = Made(spec, PlatformOf({AnyRow("A")}), GatedModel());
  EXPECT_EQ(plan.groups[1].block_tokens, 2048);
  EXPECT_EQ(plan.groups[0].page_bytes, 4'194'304);
  EXPECT_THAT(plan.notes, ::testing::Contains(HasSubstr("282% of it padding")));
}

TEST(HybridPlan, NamesTheRowThatTheAlignedBlockDoesNotSuit) {  // BV-13
  EXPECT_EQ(Refusal(SmallSpec(), PlatformOf({ExactManagerRow("EXACT", {16})}), GatedModel()),
            "model.yaml kv.blockSize: 544 is not usable, which 16 grows to so that a block takes "
            "as much as a state: EXACT needs exactly 16; no choice of backends suits group "
            "full_attention (EXACT needs exactly 16); choose other backends");
}

TEST(HybridPlan, CountsStatesAndPadding) {
  Spec spec = SmallSpec();
  Plan plan = Made(spec, PlatformOf({AnyRow("A")}), GatedModel());
  // The running state and the one at the last block's end, of two sequences, and the null block.
  EXPECT_EQ(plan.groups[0].blocks, 5);
  EXPECT_EQ(plan.groups[0].bytes(), int64_t{5} * 6 * 1'114'112);
  spec.kv.prefix_cache = false;
  EXPECT_EQ(Made(spec, PlatformOf({AnyRow("A")}), GatedModel()).groups[0].blocks, 3);
  EXPECT_EQ(plan.memory.kv_bytes, plan.groups[0].bytes() + plan.groups[1].bytes());
}

TEST(HybridPlan, OfStatesAloneSelectsNothing) {  // SV-16, RC-3
  ModelConfig model = ModelOf(std::vector<LayerSpec>(4, GatedDelta()));
  Plan plan = Made(SmallSpec(), PlatformOf({}), model);
  EXPECT_EQ(plan.selector_calls, 0);
  ASSERT_EQ(plan.groups.size(), 1u);
  EXPECT_EQ(plan.groups[0].page_bytes, 1'097'728);
  EXPECT_GT(plan.groups[0].blocks, 2);
}

TEST(HybridPlan, OfEncoderLayersAloneSelectsAndCachesNothing) {  // SV-16
  LayerSpec layer = FullLayer(4, 4, 64);
  layer.kind = KvKind::kEncoderOnly;
  Plan plan = Made(SmallSpec(), PlatformOf({}), ModelOf({layer, layer}));
  EXPECT_EQ(plan.selector_calls, 0);
  ASSERT_EQ(plan.groups.size(), 1u);
  EXPECT_EQ(plan.groups[0].name, "encoder_only_attention");
  EXPECT_EQ(plan.groups[0].attention[0].reason, "nothing is cached: no attention backend");
  EXPECT_EQ(plan.groups[0].blocks, 0);
  EXPECT_EQ(plan.memory.kv_bytes, 0);
  EXPECT_EQ(plan.context_length, 4096);
}

TEST(HybridPlan, OfCrossAttentionCachesTheEncodersTokens) {
  LayerSpec cross = FullLayer(4, 4, 64);
  cross.kind = KvKind::kCross;
  ModelConfig model = ModelOf({FullLayer(4, 4, 64), cross});
  model.encoder_length = 1500;
  AttentionRow row = AnyRow("A");
  row.kinds.push_back(KvKind::kCross);
  Plan plan = Made(SmallSpec(), PlatformOf({row}), model);
  ASSERT_EQ(plan.groups.size(), 2u);
  EXPECT_EQ(plan.groups[1].blocks, 2 * 94 + 1);
  EXPECT_EQ(plan.groups[0].blocks, 2 * 256 + 1);
}

TEST(LatentPlan, WithoutARowIsMadeOfOps) {
  Plan plan = Made(SmallSpec(), CpuPlatform(), ModelOf({Latent(), Latent()}));
  const AttentionGroup& attention = plan.groups[0].attention[0];
  EXPECT_TRUE(attention.op_driven);
  EXPECT_EQ(attention.row, "");
  EXPECT_EQ(attention.backend(), "(op-driven)");
  EXPECT_THAT(ToText(plan), ::testing::HasSubstr("0.0: (op-driven), no MLA backend registered"));
  EXPECT_EQ(ToJson(plan)["kvGroups"][0]["attention"][0]["backend"], "(op-driven)");
  EXPECT_EQ(attention.reason, "no MLA backend registered");
  EXPECT_EQ(plan.groups[0].page_bytes, 16 * 576 * 2);
  EXPECT_EQ(plan.groups[0].kernel_block_tokens, 16);
}

// Inputs that pass selection and fail only the shape (RC-5, RC-6), and their controls.
AttentionRow LatentRow() {
  AttentionRow row = AnyRow("LATENT");
  row.kinds = {KvKind::kMla};
  row.mla = true;
  return row;
}
AttentionRow OutermostRow(KvKind kind) {
  AttentionRow row = AnyRow("OUTERMOST");
  row.kinds = {kind};
  row.mla = kind == KvKind::kMla;
  row.head_slots = 2;  // a plane of K and one of V
  return row;
}

TEST(Shapes, OfKAndVOutermostAreRefusedForDenseGroups) {
  PlanAttempt attempt = TryPlan(SmallSpec(), PlatformOf({OutermostRow(KvKind::kFull)}),
                                ModelOf({FullLayer(4, 2, 128)}), {});
  EXPECT_EQ(attempt.check, "shapes");
  EXPECT_THAT(Text(attempt.problems),
              HasSubstr("OUTERMOST declares [2, 16, 512] in planes of its own: the cache holds [2, "
                        "16, 512]"));
}

TEST(Shapes, OfKAndVOutermostAreRefusedForLatentGroups) {
  PlanAttempt attempt =
      TryPlan(SmallSpec(), PlatformOf({OutermostRow(KvKind::kMla)}), ModelOf({Latent()}), {});
  EXPECT_EQ(attempt.check, "shapes");
}

TEST(Shapes, OfLatentAttentionWithTwoKvHeadsAreRefused) {
  for (const std::vector<AttentionRow>& rows : {std::vector{LatentRow()}, {}}) {
    PlanAttempt attempt = TryPlan(SmallSpec(), PlatformOf(rows), ModelOf({Latent(2)}), {});
    EXPECT_EQ(attempt.check, "shapes");
    EXPECT_THAT(Text(attempt.problems), HasSubstr("[1, 16, 1152]: the cache holds [2, 16, 1152]"));
  }
}

TEST(Shapes, OfTheirOwnKindPass) {
  EXPECT_EQ(Refusal(SmallSpec(), PlatformOf({AnyRow("DENSE")}), ModelOf({FullLayer(4, 2, 128)})),
            "");
  EXPECT_EQ(Refusal(SmallSpec(), PlatformOf({LatentRow()}), ModelOf({Latent()})), "");
}

TEST(Shapes, OfADenseRowFailForALatentGroup) {
  AttentionRow dense = AnyRow("DENSE");
  dense.kinds = {KvKind::kMla};
  dense.mla = true;  // passes selection, then declares what a dense row does
  Platform platform = PlatformOf({dense});
  Plan plan = Made(SmallSpec(), platform, ModelOf({Latent()}));
  platform.rows[0].mla = false;
  EXPECT_THAT(Text(CheckDeclaredShapes(plan, platform.rows)),
              HasSubstr("DENSE declares [1, 16, 2304]: the cache holds [1, 16, 1152]"));
}

TEST(JointSearch, SaysThatItFoundWhatStepsDoNot) {
  AttentionRow fast = ExactManagerRow("A_FAST", {24}), slow = AnyRow("B_SLOW"),
               window = ExactManagerRow("WINDOW", {32});
  fast.kinds = slow.kinds = {KvKind::kFull};
  window.kinds = {KvKind::kSliding};
  Spec spec = SmallSpec();
  Platform platform = PlatformOf({fast, slow, window});
  Plan plan = Made(spec, platform, HybridModel());
  EXPECT_EQ(plan.groups[1].attention[0].row, "B_SLOW");
  EXPECT_EQ(plan.groups[1].attention[0].reason, "joint search, in place of A_FAST");
  EXPECT_EQ(plan.groups[1].block_tokens, 32);
  EXPECT_EQ(plan.groups[1].block_steps[1].stage, "search");
  EXPECT_THAT(plan.notes, ::testing::Contains("joint search: B_SLOW takes the place of A_FAST in "
                                              "group full_attention, so that blocks of 32 suit "
                                              "every group"));
  // Never against the user.
  spec.backends["full_attention"].use = "A_FAST";
  EXPECT_THAT(Refusal(spec, platform, HybridModel()),
              HasSubstr("no choice of backends suits group sliding_window (WINDOW needs exactly "
                        "32), group full_attention (A_FAST needs exactly 24)"));
}

TEST(JointSearch, IsNotNeededWhereStepsSucceed) {
  for (const std::string& note : Made(SmallSpec(), CpuPlatform(), HybridModel()).notes)
    EXPECT_THAT(note, ::testing::Not(HasSubstr("joint search")));
}

TEST(Layers, OfAnUnknownKindAreRefused) {
  ModelConfig model = ModelOf({FullLayer()});
  model.layers[0].kind = static_cast<KvKind>(42);
  EXPECT_THAT(Refusal(SmallSpec(), CpuPlatform(), model),
              HasSubstr("layer 0 is of an unknown kind, 42: full_attention, mla_attention"));
  model.layers[0] = GatedDelta();
  model.layers[0].states.clear();
  EXPECT_THAT(Refusal(SmallSpec(), CpuPlatform(), model),
              HasSubstr("layer 0 is recurrent and states no state"));
}

}  // namespace
}  // namespace ashlar
