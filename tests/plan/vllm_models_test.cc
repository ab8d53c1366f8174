// The same public models and machines as in models_test.cc, planned as vLLM 0.33 would plan them,
// by the reference catalogue.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "catalogue/reference_plan.h"
#include "probe/platform.h"
#include "support/golden.h"
#include "support/model_configs.h"

namespace ashlar {
namespace {

using testing_support::ModelConfigNames;
using testing_support::PublicConfig;

std::string BackendText(const ReferenceAttention& attention) {
  if (!attention.choice.chosen.empty()) return std::string(attention.choice.chosen);
  return attention.choice.error == VllmError::kNone ? "-"
                                                    : std::string(Name(attention.choice.error));
}

// "full_attention x32 FLASH_ATTN 16; 16 tokens, LBNHC, 1 group of 32", or how far it came.
std::string Summary(const ReferencePlan& plan) {
  std::string text;
  for (const ReferenceAttention& attention : plan.attention) {
    text +=
        fmt::format("{} x{} {}", attention.name, attention.layers.size(), BackendText(attention));
    if (attention.kernel_block_tokens > 0)
      text += fmt::format(" {}", attention.kernel_block_tokens);
    text += "; ";
  }
  if (!plan.failed.empty()) return text + fmt::format("no {}: {}", plan.failed, plan.why);
  text += fmt::format("{} tokens, {}, groups of", plan.blocks.tokens, Name(plan.layout.layout));
  for (const ReferenceGroup& group : plan.grouping.groups) {
    text += fmt::format(" {}", group.layers.size());
  }
  return text;
}

TEST(ModelsInTheReferenceCatalogue, PlanOrTheStepWithoutAnAnswerEach) {
  std::string text;
  for (const std::string& profile : PlatformProfiles()) {
    Platform platform = ReadPlatform(profile).value();
    text += profile + "\n";
    for (const std::string& name : ModelConfigNames()) {
      ModelConfig model = ReadModelConfig(PublicConfig(name), name).value();
      Spec spec;
      spec.name = name;
      Result<ReferencePlan> plan =
          PlanLikeReference(spec, platform, model, WeightFacts{model.weight_bytes()}, VllmAssume{});
      text += fmt::format("  {}: {}\n", name,
                          plan.ok() ? Summary(*plan) : "refused: " + plan.problems().front().found);
    }
  }
  testing_support::ExpectGolden("tests/plan/golden/models_vllm.txt", text);
}

}  // namespace
}  // namespace ashlar
