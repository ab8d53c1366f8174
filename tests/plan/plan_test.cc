#include "plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "plan/layout.h"
#include "support/plan_builders.h"

namespace ashlar {
namespace {

using testing::BasicSpec;
using testing::CpuPlatform;
using testing::CudaDevice;
using testing::DenseModel;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::HybridModel;
using ::testing::IsEmpty;
using testing::Placed;

std::string Refusal(const Spec& spec, const Platform& platform = CpuPlatform(),
                    const ModelConfig& model = HybridModel(), const WeightFacts& weights = {}) {
  Result<Plan> plan = MakePlan(spec, platform, model, weights);
  return plan.ok() ? "" : Text(plan.problems());
}

Plan Made(const Spec& spec, const Platform& platform = CpuPlatform(),
          const ModelConfig& model = HybridModel(), const WeightFacts& weights = {}) {
  Result<Plan> plan = MakePlan(spec, platform, model, weights);
  if (!plan.ok()) ADD_FAILURE() << Text(plan.problems());
  return plan.ok() ? std::move(*plan) : Plan{};
}

TEST(MakePlan, GivesEachGroupItsOwnBackend) {
  Plan plan = Made(BasicSpec());
  ASSERT_EQ(plan.groups.size(), 2u);
  EXPECT_EQ(plan.groups[0].name, "sliding_window");
  EXPECT_EQ(plan.groups[0].attention[0].row, "CPU_WINDOW");
  EXPECT_EQ(plan.groups[1].name, "full_attention");
  EXPECT_EQ(plan.groups[1].attention[0].row, "CPU_PAGED");
  for (const KvGroup& group : plan.groups) {
    EXPECT_EQ(group.block_tokens, 32);
    EXPECT_EQ(group.kernel_block_tokens, 32);
    EXPECT_EQ(group.dtype, DType::kBF16);
    EXPECT_GE(group.attention[0].candidates.size(), 3u);
  }
  EXPECT_EQ(plan.platform, "cpu");
  EXPECT_EQ(plan.layout, KvLayout::kLBHNC);
  EXPECT_EQ(plan.hash_block_tokens, 32);
  EXPECT_EQ(plan.context_length, 1024);
  EXPECT_EQ(plan.threads, 2);
}

Platform GpuPlatform(uint32_t capability) {
  Platform platform;
  platform.name = "gpu";
  platform.devices = {CudaDevice(capability)};
  platform.rows = {testing::AnyRow("GPU_PAGED", {testing::Multiple(16)}, "cuda")};
  return platform;
}

TEST(Quantization, HalvesTheLayersMatrices) {
  // Of 30 layers: q, k, v, o, gate, up and down, and a scale for each of their rows.
  const int64_t saved = 30 * (2 * 576 * 576 + 2 * 192 * 576 + 3 * 1536 * 576);
  const int64_t scales = 30 * 4 * (3 * 576 + 2 * 192 + 2 * 1536);
  ModelConfig model = DenseModel();
  model.weights = {.kept = 49152 * 576, .linear = double(saved), .experts = 0};
  const WeightFacts weights{model.weight_bytes()};
  Spec spec = BasicSpec();
  const Plan plain = Made(spec, GpuPlatform(90), model, weights);
  spec.quantization = "fp8";
  const Plan fp8 = Made(spec, GpuPlatform(90), model, weights);
  EXPECT_EQ(plain.memory.weight_bytes, weights.bytes);
  EXPECT_EQ(fp8.memory.weight_bytes, weights.bytes - saved + scales);
  EXPECT_EQ(fp8.quantization, "fp8");
  EXPECT_NE(fp8.hash, plain.hash);
  EXPECT_THAT(ToText(fp8), HasSubstr("weights   fp8, quantised when loaded"));
}

TEST(Quantization, IsRefusedWhereThereAreNoSuchProducts) {
  Spec spec = BasicSpec();
  spec.quantization = "fp8";
  EXPECT_THAT(Refusal(spec),
              HasSubstr("quantization: Test CPU has no fp8 products: an NVIDIA GPU of compute "
                        "capability 8.9 or newer; remove quantization, or choose such a device"));
  EXPECT_THAT(Refusal(spec, GpuPlatform(80), DenseModel()), HasSubstr("has no fp8 products"));
}

TEST(Quantization, TakesFloatWeightsOnly) {
  Spec spec = BasicSpec();
  spec.quantization = "fp8";
  ModelConfig model = DenseModel();
  model.weight_dtype = DType::kQ8_0;
  EXPECT_THAT(Refusal(spec, GpuPlatform(90), model),
              HasSubstr("the checkpoint's weights are quantised already: weights in float32, "
                        "float16 or bfloat16; remove quantization"));
}

TEST(MakePlan, IsAFunctionOfItsInputs) {
  EXPECT_EQ(ToYaml(Made(BasicSpec())), ToYaml(Made(BasicSpec())));
}

TEST(MakePlan, FlippingTheSpecFlipsTheRow) {
  Spec spec = BasicSpec();
  spec.backends["full_attention"].use = "REFERENCE";
  Plan mixed = Made(spec);
  EXPECT_EQ(mixed.groups[1].attention[0].row, "REFERENCE");
  EXPECT_EQ(mixed.groups[0].attention[0].row, "CPU_WINDOW");
  EXPECT_EQ(mixed.platform, "cpu");

  spec.backends = {{"default", {"REFERENCE", {}, {}}}};
  Plan all = Made(spec);
  EXPECT_EQ(all.groups[0].attention[0].row, "REFERENCE");
  EXPECT_EQ(all.platform, "reference");  // one plugin carries out the whole model
}

TEST(MakePlan, AForcedPlatformAdmitsOnlyItsRows) {
  Spec spec = BasicSpec();
  spec.platform = "reference";
  Plan plan = Made(spec);
  EXPECT_EQ(plan.platform, "reference");
  EXPECT_EQ(plan.groups[0].dtype, DType::kF32);
  EXPECT_EQ(plan.groups[0].attention[0].row, "REFERENCE");
  EXPECT_EQ(plan.groups[0].block_tokens, 16);
}

TEST(MakePlan, KvTypeFollowsWeightsAndPlatform) {
  ModelConfig model = HybridModel();
  auto type = [&](DType weights, const std::string& asked = "auto") {
    model.weight_dtype = weights;
    Spec spec = BasicSpec();
    spec.kv.dtype = asked;
    return Made(spec, CpuPlatform(), model).groups[0].dtype;
  };
  EXPECT_EQ(type(DType::kBF16), DType::kBF16);
  EXPECT_EQ(type(DType::kQ4_1), DType::kBF16);
  EXPECT_EQ(type(DType::kF16), DType::kBF16);
  EXPECT_EQ(type(DType::kF32), DType::kF32);
  EXPECT_EQ(type(DType::kF32, "float16"), DType::kF16);
}

TEST(MakePlan, RefusesABlockSizeByTheRowsRule) {  // BK-02
  Spec spec = Placed(BasicSpec(), "kv.blockSize", 12, 15);
  spec.kv.block_size = 24;
  EXPECT_EQ(Refusal(spec, CpuPlatform(), DenseModel()),
            "model.yaml:12:15 kv.blockSize: 24 is not usable: CPU_PAGED needs a multiple of 16; "
            "use 16 or 32");
  EXPECT_EQ(Refusal(spec),
            "model.yaml:12:15 kv.blockSize: 24 is not usable: CPU_WINDOW and CPU_PAGED need a "
            "multiple of 16; use 16 or 32");
  spec.kv.block_size = 8;
  EXPECT_EQ(Refusal(spec, CpuPlatform(), DenseModel()),
            "model.yaml:12:15 kv.blockSize: 8 is not usable: CPU_PAGED needs a multiple of 16; use "
            "16");
  // The same text when the row is forced.
  spec.backends["default"].use = "CPU_PAGED";
  EXPECT_EQ(Refusal(spec, CpuPlatform(), DenseModel()),
            "model.yaml:12:15 kv.blockSize: 8 is not usable: CPU_PAGED needs a multiple of 16; use "
            "16");
}

TEST(MakePlan, TakesABlockSizeThatIsUsable) {
  Spec spec = BasicSpec();
  spec.kv.block_size = 48;
  Plan plan = Made(spec);
  EXPECT_EQ(plan.groups[0].block_tokens, 48);
  EXPECT_EQ(plan.groups[0].block_steps.front().stage, "requested");
  EXPECT_EQ(plan.groups[0].block_steps.front().tokens, 48);
  spec.platform = "reference";
  spec.kv.block_size = 24;
  EXPECT_EQ(Made(spec).groups[1].block_tokens, 24);
}

TEST(MakePlan, RefusesALayoutThatNoRowTakes) {
  Platform platform = CpuPlatform();
  for (AttentionRow& row : platform.rows) {
    if (row.platform == "cpu") row.layouts = {KvLayout::kLBHNC, KvLayout::kLBNHC};
  }
  Spec spec = Placed(BasicSpec(), "kv.layout", 9, 11);
  spec.kv.layout = "BHLNC";
  EXPECT_EQ(Refusal(spec, platform),
            "model.yaml:9:11 kv.layout: BHLNC is not usable: CPU_WINDOW takes LBHNC or LBNHC, "
            "CPU_PAGED takes LBHNC or LBNHC; use LBHNC or LBNHC");
  spec.kv.layout = "LBNHC";
  Plan plan = Made(spec, platform);
  EXPECT_EQ(plan.layout, KvLayout::kLBNHC);
  EXPECT_EQ(plan.layout_reason, "kv.layout");
}

TEST(MakePlan, PagesOfOneShapeButOtherBytesNeedABlockCompactLayout) {
  Platform platform = CpuPlatform();
  for (AttentionRow& row : platform.rows) row.layouts = {KvLayout::kLHBNC, KvLayout::kLBNHC};
  EXPECT_EQ(Made(BasicSpec(), platform).layout, KvLayout::kLHBNC);
  ModelConfig model = HybridModel();
  model.layers.back().head_dim = model.layers.back().head_dim_v = 64;
  EXPECT_EQ(Made(BasicSpec(), platform, model).layout, KvLayout::kLBNHC);
}

TEST(MakePlan, RefusesToSplitBlocksWhereLayersLieBetween) {
  Platform platform = CpuPlatform();
  platform.rows[0].kernel_blocks = {testing::Exact(32)};
  Spec spec = BasicSpec();
  spec.kv.block_size = 64;
  spec.kv.layout = "BLHNC";
  EXPECT_EQ(Refusal(spec, platform, DenseModel()),
            "model.yaml kv.layout: BLHNC cannot split blocks of 64 into 32 in group "
            "full_attention: blocks of one layer that follow each other; set kv.blockSize to 32, "
            "or kv.layout to LBHNC or LBNHC");
  spec.kv.layout = "LBNHC";
  EXPECT_EQ(Made(spec, platform, DenseModel()).groups[0].kernel_block_tokens, 32);
}

TEST(MakePlan, ReportsTheProblemsOfAllGroups) {
  Platform platform = CpuPlatform();
  std::erase_if(platform.rows, [](const AttentionRow& row) { return row.name == "REFERENCE"; });
  for (AttentionRow& row : platform.rows) row.head_multiple = 64;
  PlanAttempt attempt = TryPlan(BasicSpec(), platform, HybridModel(), {});
  EXPECT_EQ(attempt.check, "backends");
  ASSERT_EQ(attempt.problems.size(), 2u);
  EXPECT_THAT(attempt.problems[0].Text(), HasSubstr("group sliding_window: no valid attention"));
  EXPECT_THAT(attempt.problems[0].Text(),
              HasSubstr("REFERENCE: plugin not installed (no plugin \"reference\" was found)"));
  EXPECT_THAT(attempt.problems[1].Text(), HasSubstr("group full_attention: no valid attention"));
}

TEST(MakePlan, RefusesAnUnknownBackendBeforeAnythingElse) {
  Spec spec = Placed(BasicSpec(), "backends.default.use", 4, 9);
  spec.backends["default"].use = "CPU_PAGD";
  std::string text = Refusal(spec);
  EXPECT_THAT(text, ::testing::StartsWith("model.yaml:4:9 backends.default.use: \"CPU_PAGD\" is no "
                                          "attention backend: "));
  EXPECT_THAT(text, HasSubstr("did you mean CPU_PAGED?"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 0) << text;
}

TEST(MakePlan, RefusesSeveralDevices) {
  Spec spec = Placed(BasicSpec(), "parallel.tensor", 3, 20);
  spec.parallel.tensor = 2;
  EXPECT_EQ(Refusal(spec),
            "model.yaml:3:20 parallel.tensor: 2 is not usable: 1: a plan uses one device; set it "
            "to 1");
}

TEST(MakePlan, CutsTheContextToWhatFits) {
  Spec spec = BasicSpec();
  spec.kv.memory = {.percent = std::nullopt, .bytes = 64 << 20};
  Plan plan = Made(spec, CpuPlatform(), DenseModel());
  // 30 layers x 3 heads x 256 bytes = 22.5 KiB a token, 720 KiB a block; one block is the null
  // block.
  EXPECT_EQ(plan.context_length, 90 * 32);
  EXPECT_EQ(plan.groups[0].blocks, 91);
  EXPECT_EQ(plan.context_reason, "cut from 8192 to what fits");
  EXPECT_THAT(plan.notes,
              ElementsAre("contextLength: cut from 8192 to 2880 tokens: one sequence needs 180.7 "
                          "MiB of KV cache, 64 MiB is there"));
}

TEST(MakePlan, RefusesAContextThatDoesNotFit) {  // BK-13
  Spec spec = Placed(BasicSpec(), "contextLength", 5, 16);
  spec.context_length = 8192;
  spec.kv.memory = {.percent = std::nullopt, .bytes = 64 << 20};
  spec.limits.batch_tokens = 64;
  std::string text = Refusal(spec, CpuPlatform(), DenseModel(), {.bytes = 97 << 20});
  // The workspace is the model's own figure.
  size_t begin = text.find("workspace "), end = text.find(", kv.memory");
  ASSERT_NE(end, std::string::npos) << text;
  text.replace(begin, end - begin, "workspace W");
  EXPECT_EQ(text,
            "model.yaml:5:16 contextLength: 8192 tokens need 180.7 MiB of KV cache, 64 MiB is "
            "there; 116.7 MiB missing (free 8 GiB, weights 97 MiB, workspace W, kv.memory 64 "
            "MiB): at most 2880 tokens; lower contextLength to 2880, set kv.memory to at least "
            "181MiB or lower limits.batchTokens");
}

TEST(MakePlan, RefusesAPoolWithoutRoomForOneBlock) {
  Spec spec = BasicSpec();
  spec.kv.memory = {.percent = std::nullopt, .bytes = 1 << 20};
  EXPECT_THAT(Refusal(spec, CpuPlatform(), DenseModel()),
              ::testing::AllOf(::testing::StartsWith("model.yaml kv.memory: 8192 tokens need"),
                               HasSubstr("at least one block a group; choose a smaller model, set "
                                         "kv.memory to at least 181MiB")));
}

TEST(MakePlan, RefusesWeightsThatDoNotFit) {
  PlanAttempt attempt =
      TryPlan(BasicSpec(), CpuPlatform(), DenseModel(), {.bytes = int64_t{9} << 30});
  EXPECT_EQ(attempt.check, "blocks");
  EXPECT_THAT(Text(attempt.problems), HasSubstr("weights take 9 GiB and workspace"));
  EXPECT_THAT(Text(attempt.problems), HasSubstr("8 GiB is free on cpu"));
}

TEST(MakePlan, RefusesMoreMemoryThanIsLeft) {
  Spec spec = Placed(BasicSpec(), "kv.memory", 8, 11);
  spec.kv.memory = {.percent = std::nullopt, .bytes = int64_t{12} << 30};
  EXPECT_THAT(Refusal(spec), ::testing::StartsWith(
                                 "model.yaml:8:11 kv.memory: 12 GiB is more than what is left: at "
                                 "most "));
}

TEST(MakePlan, RefusesAContextPastTheModelsOwn) {
  Spec spec = Placed(BasicSpec(), "contextLength", 5, 16);
  spec.context_length = 4096;
  EXPECT_EQ(Refusal(spec),
            "model.yaml:5:16 contextLength: 4096 is more than the model was trained for: 1 to "
            "1024; set it to 1024 or less");
}

TEST(MakePlan, TakesNoMoreBlocksThanItsLimitsUse) {
  Spec spec = BasicSpec();
  spec.limits.sequences = 4;
  spec.limits.batch_tokens = 64;
  Plan plan = Made(spec);
  EXPECT_EQ(plan.groups[1].blocks, 4 * 32 + 1);
  // ceil((127 + 64) / 32) + 1 blocks a sequence.
  EXPECT_EQ(plan.groups[0].blocks, 4 * 7 + 1);
  EXPECT_DOUBLE_EQ(plan.memory.sequences, 4);
}

TEST(MakePlan, OfAModelWithoutAttentionSelectsNothing) {  // SV-16
  ModelConfig model = HybridModel();
  model.layers.clear();
  Platform platform = CpuPlatform();
  platform.rows.clear();
  Plan plan = Made(BasicSpec(), platform, model);
  EXPECT_THAT(plan.groups, IsEmpty());
  EXPECT_THAT(SelectionLines(plan), IsEmpty());
}

TEST(MakePlan, RefusesLayersWithoutASize) {
  ModelConfig model = HybridModel();
  model.layers[2].window = 0;
  EXPECT_EQ(TryPlan(BasicSpec(), CpuPlatform(), model, {}).check, "source");
  EXPECT_THAT(Refusal(BasicSpec(), CpuPlatform(), model),
              ::testing::StartsWith("model.yaml source: layer 2 has 4 heads, 2 KV heads, head size "
                                    "32, window 0: "));
}

TEST(MakePlan, LimitsThreadsToWhatMayBeUsed) {
  Spec spec = BasicSpec();
  spec.cpu.threads = 1;
  EXPECT_EQ(Made(spec).threads, 1);
  spec.cpu.threads = 64;
  Plan plan = Made(spec);
  EXPECT_EQ(plan.threads, 2);
  EXPECT_THAT(plan.notes, ElementsAre("model.yaml cpu.threads: 64 is more than the 2 that this "
                                      "process may use; 2 are used"));
}

TEST(CheckServable, TakesAPlanOfTestedRows) {
  EXPECT_THAT(CheckServable(Made(BasicSpec()), CpuPlatform().rows), IsEmpty());
}

TEST(CheckServable, RefusesWhatCanOnlyBeShown) {
  Platform platform = CpuPlatform();
  platform.rows[0].verification = Verification::kPlanned;
  ModelConfig model = HybridModel();
  model.has_forward = false;
  Plan plan = Made(BasicSpec(), platform, model);
  EXPECT_EQ(plan.groups[1].attention[0].row, "CPU_PAGED");
  EXPECT_EQ(Text(CheckServable(plan, platform.rows)),
            "source: architecture gemma3 can be planned only: an architecture with a forward pass; "
            "serve another model\n"
            "group full_attention attn 0: CPU_PAGED: planned, no kernel yet: a backend with a "
            "kernel; choose another backend or platform");
}

TEST(CheckServable, NamesTheQuantisationRatherThanTheArchitecture) {
  ModelConfig model = HybridModel();
  model.quantization.method = "fp8";
  EXPECT_EQ(Text(CheckServable(Made(BasicSpec(), CpuPlatform(), model), CpuPlatform().rows)),
            "source: weights quantised as fp8 can be planned only: safetensors in float32, float16 "
            "or bfloat16, or GGUF; serve the model from its unquantised checkpoint or a GGUF file");
}

TEST(CheckServable, RefusesRowsOfTwoPlugins) {
  Spec spec = BasicSpec();
  spec.backends["full_attention"].use = "REFERENCE";
  EXPECT_EQ(Text(CheckServable(Made(spec), CpuPlatform().rows)),
            "group full_attention attn 0: REFERENCE belongs to plugin reference, the rest of the "
            "model to cpu: one plugin for a whole model; set platform to reference");
  EXPECT_THAT(Text(CheckServable(Made(spec), {})), HasSubstr("plugin not installed"));
}

ModelConfig RandomModel(std::mt19937& random) {
  ModelConfig model = HybridModel();
  model.layers.resize(1 + random() % 48);
  for (LayerSpec& layer : model.layers) {
    int kv_heads = 1 << (random() % 3);
    int head_dim = 16 * (1 << (random() % 3));
    int heads = kv_heads * static_cast<int>(1 + random() % 2);
    layer = random() % 2 ? testing::FullLayer(heads, kv_heads, head_dim)
                         : testing::SlidingLayer(64 << (random() % 3), heads, kv_heads, head_dim);
  }
  model.context_length = static_cast<int64_t>(1 + random() % 20'000);
  return model;
}

// Whatever the model: pools lie apart, every page is within the arena, one sequence fits, and
// nothing exceeds what the spec allows.
TEST(MakePlan, HoldsItsPromisesForRandomModels) {
  uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const char* layouts[] = {"auto", "LBHNC", "LBNHC", "BLHNC", "BLNHC"};
  for (int round = 0; round < 150; ++round) {
    Spec spec = BasicSpec();
    spec.kv.layout = layouts[random() % 5];
    spec.limits.sequences = static_cast<int>(1 + random() % 64);
    spec.limits.batch_tokens = static_cast<int>(64 + random() % 2048);
    spec.kv.memory = {.percent = std::nullopt,
                      .bytes = (int64_t{64} << 20) + static_cast<int64_t>(random() % (1u << 30))};
    ModelConfig model = RandomModel(random);
    Result<Plan> made = MakePlan(spec, CpuPlatform(), model, {});
    ASSERT_TRUE(made.ok()) << Text(made.problems());
    const Plan& plan = *made;
    std::vector<int> owners(model.layers.size());
    int64_t end = 0;
    for (const KvGroup& group : plan.groups) {
      for (int layer : group.layers) ++owners[static_cast<size_t>(layer)];
      EXPECT_GE(group.offset, end);
      EXPECT_EQ(group.page_bytes, group.head_slots * group.states * group.content_bytes);
      end = group.offset + group.bytes();
      int64_t last = group.offset + group.content_bytes;
      const int64_t extents[] = {static_cast<int64_t>(group.layers.size()), group.blocks,
                                 group.head_slots, group.states};
      for (size_t i = 0; i < 4; ++i) last += (extents[i] - 1) * group.strides[i];
      EXPECT_EQ(last, end);
      EXPECT_GT(group.blocks, 1);
    }
    EXPECT_EQ(owners, std::vector<int>(owners.size(), 1));
    EXPECT_EQ(plan.memory.kv_bytes, end);
    EXPECT_LE(end, plan.memory.kv_limit_bytes + 64 * static_cast<int64_t>(plan.groups.size()));
    EXPECT_GE(plan.memory.sequences, 1.0);
    EXPECT_LE(plan.context_length, model.context_length);
  }
}

}  // namespace
}  // namespace ashlar
