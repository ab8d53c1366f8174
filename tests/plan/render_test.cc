#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <fstream>

#include "base/mapped_file.h"
#include "plan/plan.h"
#include "plan/yaml.h"
#include "support/plan_builders.h"

namespace ashlar {
namespace {

using testing::BasicSpec;
using testing::CpuPlatform;
using testing::DenseModel;
using ::testing::ElementsAre;
using testing::HybridModel;

// Rows that other builds of the runtime may know do not stand in goldens, nor does the workspace,
// which is the model's own figure.
Plan Golden(Plan plan) {
  plan.memory.workspace_bytes = 1 << 20;
  for (KvGroup& group : plan.groups) {
    for (AttentionGroup& attention : group.attention) {
      std::erase_if(attention.candidates, [](const Candidate& candidate) {
        return candidate.row != "CPU_PAGED" && candidate.row != "CPU_WINDOW" &&
               candidate.row != "REFERENCE";
      });
    }
  }
  return plan;
}

Plan Planned(const ModelConfig& model, std::string name) {
  Spec spec = BasicSpec(std::move(name));
  spec.kv.memory = {.percent = std::nullopt, .bytes = int64_t{256} << 20};
  spec.limits.sequences = 8;
  spec.limits.batch_tokens = 512;
  spec.digest = "0123456789abcdef";
  Result<Plan> plan = MakePlan(spec, CpuPlatform(), model, {.bytes = 4 << 20});
  if (!plan.ok()) ADD_FAILURE() << Text(plan.problems());
  return plan.ok() ? Golden(std::move(*plan)) : Plan{};
}

Plan HybridPlan() { return Planned(HybridModel(), "demo"); }
Plan DensePlan() { return Planned(DenseModel(), "smollm2"); }

// Compares with tests/plan/golden/NAME; a difference leaves the new text in the build folder.
void ExpectGolden(const std::string& name, const std::string& text) {
  Result<std::string> golden =
      ReadTextFile(std::string(ASHLAR_SOURCE_DIR) + "/tests/plan/golden/" + name, 1 << 20);
  if (golden.ok() && *golden == text) return;
  std::filesystem::path folder = std::string(ASHLAR_BUILD_DIR) + "/golden";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / name) << text;
  ADD_FAILURE() << "differs from tests/plan/golden/" << name << "; the new text is "
                << (folder / name).string() << "\n"
                << text;
}

TEST(PlanText, OfAHybridModel) { ExpectGolden("hybrid.txt", ToText(HybridPlan())); }
TEST(PlanText, OfAHybridModelInFull) {
  ExpectGolden("hybrid_full.txt", ToText(HybridPlan(), true));
}
TEST(PlanText, OfADenseModel) { ExpectGolden("dense.txt", ToText(DensePlan())); }
TEST(PlanYaml, OfAHybridModel) { ExpectGolden("hybrid.yaml", ToYaml(HybridPlan())); }
TEST(PlanYaml, OfADenseModel) { ExpectGolden("dense.yaml", ToYaml(DensePlan())); }

TEST(SelectionLines, HaveOneFormAndAlwaysNameTheLayout) {  // RC-7
  EXPECT_THAT(
      SelectionLines(HybridPlan()),
      ElementsAre("[select] group=0 attn=0 kind=sliding_window backend=CPU_WINDOW requested=auto "
                  "reason=\"rank 0 of 2 valid\" block=32 kernel=32 layout=LBHNC "
                  "shape=[169,2,32,128] device=cpu:0",
                  "[select] group=1 attn=0 kind=full_attention backend=CPU_PAGED requested=auto "
                  "reason=\"rank 0 of 2 valid\" block=32 kernel=32 layout=LBHNC "
                  "shape=[257,2,32,128] device=cpu:0",
                  "Using LBHNC KV cache layout."));
}

// The YAML of a plan, read by another parser, is the JSON of the plan.
void ExpectSame(const YAML::Node& node, const Json& json, const std::string& path) {
  SCOPED_TRACE(path);
  if (json.is_object()) {
    ASSERT_EQ(node.size(), json.size());
    for (const auto& [key, value] : json.items()) ExpectSame(node[key], value, path + "." + key);
  } else if (json.is_array()) {
    ASSERT_EQ(node.size(), json.size());
    for (size_t i = 0; i < json.size(); ++i)
      ExpectSame(node[i], json[i], path + "[" + std::to_string(i) + "]");
  } else {
    EXPECT_EQ(node.Scalar(), json.is_string() ? json.get<std::string>() : json.dump());
  }
}

TEST(PlanYaml, ReadsBackAsTheJson) {
  ExpectSame(YAML::Load(ToYaml(HybridPlan())), ToJson(HybridPlan()), "plan");
}

TEST(Yaml, QuotesWhatAReaderWouldMisread) {
  Json value = {{"a", "yes"},       {"b", "1.5"},           {"c", "x: y"}, {"d", ""},
                {"e", "plain-one"}, {"f", Json::array()},   {"g", {1, 2}}, {"h", Json::object()},
                {"i", nullptr},     {"j", {{{"k", "v\n"}}}}};
  EXPECT_EQ(YamlOf(value),
            "a: \"yes\"\nb: \"1.5\"\nc: \"x: y\"\nd: \"\"\ne: plain-one\nf: []\ng: [1, 2]\nh: {}\n"
            "i: null\nj:\n- k: \"v\\n\"\n");
}

TEST(PlanHash, IsStableAndBlindToCounts) {
  std::string hash = HybridPlan().hash;
  EXPECT_EQ(hash, "e5ec5a81b8e7b08c");
  Spec spec = BasicSpec("another name");
  spec.limits.sequences = 3;
  Platform platform = CpuPlatform();
  platform.name = "another machine";
  platform.devices[0].free_bytes /= 2;
  Result<Plan> other = MakePlan(spec, platform, HybridModel(), {});
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(other->hash, hash);
}

TEST(PlanHash, ChangesWithWhatPeersMustShare) {
  std::string hash = HybridPlan().hash;
  auto changed = [](auto change) {
    Spec spec = BasicSpec();
    ModelConfig model = HybridModel();
    change(spec, model);
    Result<Plan> plan = MakePlan(spec, CpuPlatform(), model, {});
    return plan.ok() ? plan->hash : "";
  };
  EXPECT_EQ(changed([](Spec&, ModelConfig&) {}), hash);
  EXPECT_NE(changed([](Spec& spec, ModelConfig&) { spec.kv.block_size = 64; }), hash);
  EXPECT_NE(changed([](Spec& spec, ModelConfig&) { spec.kv.layout = "LBNHC"; }), hash);
  EXPECT_NE(changed([](Spec& spec, ModelConfig&) { spec.kv.dtype = "float16"; }), hash);
  EXPECT_NE(changed([](Spec& spec, ModelConfig&) { spec.invariant = true; }), hash);
  EXPECT_NE(changed([](Spec&, ModelConfig& model) {
              for (LayerSpec& layer : model.layers) layer.head_dim = layer.head_dim_v = 64;
            }),
            hash);
  EXPECT_NE(changed([](Spec&, ModelConfig& model) { std::swap(model.layers[0], model.layers[5]); }),
            hash);
}

}  // namespace
}  // namespace ashlar
