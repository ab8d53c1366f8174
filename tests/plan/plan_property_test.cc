// What holds for plans of random models, rows and machines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "plan/plan.h"
#include "support/plan_builders.h"

namespace ashlar {
namespace {

using testing::AnyRow;
using testing::BasicSpec;
using testing::CpuPlatform;
using testing::DenseModel;
using testing::Exact;
using testing::FullLayer;
using testing::Multiple;

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  int Below(int bound) { return static_cast<int>(engine_() % static_cast<uint32_t>(bound)); }
  template <class T>
  T OneOf(std::initializer_list<T> values) {
    return *(values.begin() + Below(static_cast<int>(values.size())));
  }

  LayerSpec Layer() {
    LayerSpec layer = FullLayer(8, OneOf({1, 2, 4}), OneOf({32, 64, 128}));
    layer.kind = OneOf({KvKind::kFull, KvKind::kFull, KvKind::kSliding, KvKind::kChunkedLocal,
                        KvKind::kMla, KvKind::kMamba, KvKind::kEncoderOnly, KvKind::kCross});
    if (layer.kind == KvKind::kSliding || layer.kind == KvKind::kChunkedLocal)
      layer.window = OneOf({64, 256});
    if (layer.kind == KvKind::kMla) {
      layer.kv_heads = 1;
      layer.head_dim_v = 0;
    }
    if (layer.kind == KvKind::kMamba) layer.states = {{{OneOf({4, 64, 1000}), 128}, DType::kF32}};
    return layer;
  }

  ModelConfig Model() {
    ModelConfig model = DenseModel();
    model.layers.clear();
    for (int kinds = 1 + Below(4); kinds > 0; --kinds)
      model.layers.insert(model.layers.end(), static_cast<size_t>(1 + Below(8)), Layer());
    std::shuffle(model.layers.begin(), model.layers.end(), engine_);
    model.context_length = OneOf({500, 4096, 30'000});
    model.encoder_length = 300;
    return model;
  }

  Platform Machine() {
    Platform platform = CpuPlatform();
    platform.rows.clear();
    for (int i = 0; i < 4; ++i) {
      AttentionRow row = AnyRow("ROW" + std::to_string(i));
      row.kinds = {KvKind::kFull, KvKind::kSliding, KvKind::kChunkedLocal, KvKind::kCross};
      row.kernel_blocks = OneOf<std::vector<BlockRule>>(
          {{Multiple(16)}, {Multiple(1)}, {Exact(32), Exact(64)}, {Exact(16), Multiple(48)}});
      platform.rows.push_back(row);
    }
    return platform;
  }

 private:
  std::mt19937 engine_;
};

Spec SpecOf(int64_t kv_bytes) {
  Spec spec = BasicSpec();
  spec.limits.sequences = 4;
  spec.limits.batch_tokens = 128;
  spec.kv.memory = {.percent = std::nullopt, .bytes = kv_bytes};
  return spec;
}

void ExpectEveryLayerOnce(const Plan& plan, const ModelConfig& model) {
  std::multiset<int> in_groups, in_attention, all;
  for (size_t i = 0; i < model.layers.size(); ++i) all.insert(static_cast<int>(i));
  for (const KvGroup& group : plan.groups) {
    in_groups.insert(group.layers.begin(), group.layers.end());
    for (const AttentionGroup& attention : group.attention)
      in_attention.insert(attention.layers.begin(), attention.layers.end());
  }
  EXPECT_EQ(in_groups, all);
  EXPECT_EQ(in_attention, all);
}

void ExpectChosenRowsValid(const Plan& plan) {
  for (const KvGroup& group : plan.groups) {
    for (const AttentionGroup& attention : group.attention) {
      bool chosen =
          std::any_of(attention.candidates.begin(), attention.candidates.end(),
                      [&](const Candidate& candidate) {
                        return candidate.row == attention.row && candidate.refusals.empty();
                      });
      EXPECT_TRUE(chosen || attention.row.empty()) << group.name << " " << attention.row;
    }
  }
}

TEST(PlanProperty, HoldsForRandomModelsRowsAndMemory) {
  uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  Random random(seed);
  int planned = 0;
  for (int round = 0; round < 150; ++round) {
    ModelConfig model = random.Model();
    Platform platform = random.Machine();
    std::vector<int64_t> before;
    int64_t context = 0;
    // From far too little to all that the limits use, in growing steps.
    for (int64_t bytes = 1 << 16; bytes < int64_t{4} << 30; bytes += bytes / 3) {
      PlanAttempt attempt = TryPlan(SpecOf(bytes), platform, model, {});
      if (!attempt.plan) {
        EXPECT_TRUE(before.empty()) << "more memory and no plan: " << Text(attempt.problems);
        if (attempt.check != "blocks") break;
        continue;
      }
      ++planned;
      const Plan& plan = *attempt.plan;
      ExpectEveryLayerOnce(plan, model);
      ExpectChosenRowsValid(plan);
      EXPECT_LE(plan.memory.kv_bytes, bytes + 64 * static_cast<int64_t>(plan.groups.size()));
      EXPECT_GE(plan.context_length, context);
      std::vector<int64_t> blocks;
      for (const KvGroup& group : plan.groups) blocks.push_back(group.blocks);
      for (size_t i = 0; i < before.size(); ++i)
        EXPECT_GE(blocks[i], before[i]) << plan.groups[i].name << " at " << bytes << " bytes";
      before = std::move(blocks);
      context = plan.context_length;
    }
  }
  EXPECT_GT(planned, 100);
}

TEST(PlanProperty, SameInputSameBytes) {
  uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  Random random(seed);
  for (int round = 0; round < 30; ++round) {
    ModelConfig model = random.Model();
    Platform platform = random.Machine();
    Spec spec = SpecOf(int64_t{1} << 30);
    PlanAttempt first = TryPlan(spec, platform, model, {}),
                second = TryPlan(spec, platform, model, {});
    ASSERT_EQ(first.plan.has_value(), second.plan.has_value());
    if (first.plan) {
      EXPECT_EQ(ToYaml(*first.plan), ToYaml(*second.plan));
    } else {
      EXPECT_EQ(Text(first.problems), Text(second.problems));
    }
  }
}

}  // namespace
}  // namespace ashlar
