#include "catalogue/reference_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "catalogue/comparison.h"
#include "support/plan_builders.h"

namespace ashlar {
namespace {

using testing::BasicSpec;
using testing::DenseModel;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::HybridModel;
using ::testing::StartsWith;

Platform Profile(const char* name) { return ReadPlatform(name).value(); }

ReferencePlan Planned(const Platform& platform, const ModelConfig& model,
                      const Spec& spec = BasicSpec()) {
  Result<ReferencePlan> plan = PlanLikeReference(spec, platform, model, {}, VllmAssume{});
  if (!plan.ok()) ADD_FAILURE() << Text(plan.problems());
  return plan.ok() ? std::move(*plan) : ReferencePlan{};
}

// Latent attention with an indexer, as DeepSeek V3.2 has it.
ModelConfig SparseModel() {
  LayerSpec layer;
  layer.kind = KvKind::kMla;
  layer.heads = 128;
  layer.kv_heads = 1;
  layer.head_dim = 576;
  layer.sparse = true;
  layer.indexer_bytes = 132;
  ModelConfig model = DenseModel();
  model.layers.assign(4, layer);
  return model;
}

TEST(ReferencePlan, OfAnXpuIsNotThatOfItsHost) {
  ReferencePlan plan = Planned(Profile("xpu"), DenseModel());
  EXPECT_EQ(plan.product, "Intel Data Center GPU Max 1550");
  EXPECT_EQ(plan.attention[0].choice.chosen, "FLASH_ATTN");
}

TEST(ReferencePlan, NeedsNoPluginOfOurs) {
  Platform platform = Profile("h100");
  platform.rows.clear();
  EXPECT_EQ(Planned(platform, DenseModel()).attention[0].choice.chosen, "FLASH_ATTN");
}

TEST(ReferencePlan, KeepsAnIndexersKeysInCachesOfTheirOwn) {
  ReferencePlan plan = Planned(Profile("b200"), SparseModel());
  EXPECT_EQ(plan.failed, "") << plan.why;
  EXPECT_EQ(plan.blocks.tokens, 64);  // the indexer's; the attention would take 32
  ASSERT_EQ(plan.grouping.groups.size(), 1u);
  EXPECT_EQ(plan.grouping.groups[0].layers.size(), 8u);
  EXPECT_EQ(plan.grouping.groups[0].block_bytes(), 4 * 64 * (1152 + 132));
}

// CPU_MLA takes blocks of 16 alone, and a hybrid model outgrows them: vLLM has no answer there.
TEST(ReferencePlan, SaysWhichBackendRefusesTheBlock) {  // BV-13
  LayerSpec state;
  state.kind = KvKind::kMamba;
  state.states = {{{1 << 20}, DType::kF32}};
  ModelConfig model = SparseModel();
  for (LayerSpec& layer : model.layers) {
    layer.sparse = false;
    layer.indexer_bytes = 0;
  }
  model.layers.push_back(state);
  ReferencePlan plan = Planned(Profile("cpu-avx2"), model);
  EXPECT_EQ(plan.failed, "blocks");
  EXPECT_EQ(plan.why, "CPU_MLA refuses 3712 tokens");
  EXPECT_THAT(ToText(plan), HasSubstr("no answer for blocks: CPU_MLA refuses 3712 tokens"));
}

TEST(ReferencePlan, ShowsWhatWasRefused) {
  EXPECT_THAT(ToText(Planned(Profile("b200"), SparseModel())),
              HasSubstr("mla_attention: FLASHINFER_MLA refused: sparse not supported"));
}

TEST(ReferencePlan, JudgesEveryGroupWhenOneHasNoAnswer) {
  Spec spec = BasicSpec();
  spec.kv.block_size = 8;
  ReferencePlan plan = Planned(Profile("h100"), HybridModel(), spec);
  EXPECT_EQ(plan.failed, "backends");
  ASSERT_EQ(plan.attention.size(), 2u);
  EXPECT_EQ(plan.attention[1].choice.error, VllmError::kNoneValid);
}

std::vector<std::string> Compared(const Platform& platform, const Spec& spec,
                                  const std::string& told = "") {
  return CompareWithVllm(spec, platform, HybridModel(), {}, VllmAssume{}, told).value();
}

TEST(CompareWithVllm, NamesBothChoicesOfEachGroup) {
  EXPECT_THAT(Compared(Profile("cpu-avx2"), BasicSpec()),
              ElementsAre("sliding_window: vLLM would choose CPU_ATTN, you get CPU_WINDOW",
                          "full_attention: vLLM would choose CPU_ATTN, you get CPU_PAGED",
                          "block size: vLLM would choose 128, you get 32"));
}

TEST(CompareWithVllm, HeedsWhatVllmWasTold) {
  EXPECT_THAT(Compared(Profile("h100"), BasicSpec(), "TRITON_ATTN").front(),
              StartsWith("sliding_window: vLLM would choose TRITON_ATTN, you get "));
}

TEST(CompareWithVllm, SaysWhyThereIsNoPlan) {
  Spec spec = BasicSpec();
  spec.kv.block_size = 8;
  EXPECT_THAT(Compared(Profile("cpu-avx2"), spec),
              ElementsAre("sliding_window: vLLM would choose CPU_ATTN, you get nothing",
                          "full_attention: vLLM would choose CPU_ATTN, you get nothing",
                          HasSubstr("block size: vLLM would choose "),
                          StartsWith("no plan here: model.yaml kv.blockSize: 8 is not usable")));
}

}  // namespace
}  // namespace ashlar
