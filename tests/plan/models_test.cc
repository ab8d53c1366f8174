// Public models on every machine that planning knows by name: a plan or one typed refusal each, all
// in one golden text.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "plan/plan.h"
#include "probe/platform.h"
#include "support/golden.h"
#include "support/model_configs.h"

namespace ashlar {
namespace {

using testing_support::ModelConfigNames;
using testing_support::PublicConfig;

PlanAttempt Attempt(const std::string& name, const Platform& platform) {
  ModelConfig model = ReadModelConfig(PublicConfig(name), name).value();
  Spec spec;
  spec.name = name;
  return TryPlan(spec, platform, model, WeightFacts{model.weight_bytes()});
}

std::string GroupText(const KvGroup& group) {
  std::string text = fmt::format("{} x{}", group.name, group.layers.size());
  if (group.window > 0) text += fmt::format(" w{}", group.window);
  for (const AttentionGroup& attention : group.attention) {
    text += " " + (attention.row.empty() ? "-" : attention.row);
  }
  if (group.block_tokens > 0) {
    text += fmt::format(" {}/{}", group.block_tokens, group.kernel_block_tokens);
  }
  if (group.padded()) text += " padded";
  return text;
}

// Labels of the reasons that `text` gives.
std::string ReasonLabels(const std::string& text) {
  std::string labels;
  for (int i = 0; i < kRefusalReasons; ++i) {
    auto reason = static_cast<RefusalReason>(i);
    size_t at = text.find(Text(reason));
    if (at == std::string::npos || (at > 0 && text[at - 1] == '-')) continue;  // "non-MLA"
    labels += (labels.empty() ? "" : ", ") + std::string(Label(reason));
  }
  return labels;
}

// The check, the place, and why not the row that ranks first.
std::string RefusalText(const PlanAttempt& attempt) {
  const Problem& problem = attempt.problems.front();
  std::string first = problem.allowed.substr(0, problem.allowed.find(';'));
  std::string labels = ReasonLabels(first);
  return fmt::format("refused, {} at {}", attempt.check, problem.place) +
         (labels.empty() ? "" : ": " + first.substr(0, first.find(' ') + 1) + labels);
}

// "full_attention x32 CUDA_PAGED 16/16; LBNHC". Nothing that depends on the workspace's size.
std::string Summary(const PlanAttempt& attempt) {
  if (!attempt.plan) return RefusalText(attempt);
  const Plan& plan = *attempt.plan;
  std::string text;
  for (const KvGroup& group : plan.groups) text += GroupText(group) + "; ";
  text += Name(plan.layout);
  return plan.context_length < plan.model.context_length ? text + "; context cut" : text;
}

TEST(ModelsOnPlatforms, PlanOrOneTypedRefusalEach) {
  std::string text;
  for (const std::string& profile : PlatformProfiles()) {
    Platform platform = ReadPlatform(profile).value();
    text += profile + "\n";
    for (const std::string& name : ModelConfigNames()) {
      PlanAttempt attempt = Attempt(name, platform);
      EXPECT_NE(attempt.plan.has_value(), !attempt.check.empty()) << profile << " " << name;
      text += fmt::format("  {}: {}\n", name, Summary(attempt));
    }
  }
  testing_support::ExpectGolden("tests/plan/golden/models.txt", text);
}

// Every layer of the model stands in exactly one group, and every group fits its pool.
TEST(ModelsOnPlatforms, LayersArePlacedOnceAndPoolsFit) {
  for (const std::string& profile : PlatformProfiles()) {
    Platform platform = ReadPlatform(profile).value();
    for (const std::string& name : ModelConfigNames()) {
      PlanAttempt attempt = Attempt(name, platform);
      if (!attempt.plan) continue;
      std::multiset<int> placed;
      int64_t bytes = 0;
      for (const KvGroup& group : attempt.plan->groups) {
        placed.insert(group.layers.begin(), group.layers.end());
        bytes += group.bytes();
      }
      std::multiset<int> all;
      for (size_t i = 0; i < attempt.plan->model.layers.size(); ++i) {
        all.insert(static_cast<int>(i));
      }
      EXPECT_EQ(placed, all) << profile << " " << name;
      EXPECT_LE(bytes, attempt.plan->memory.kv_limit_bytes) << profile << " " << name;
    }
  }
}

// What needs no row asks for none: encoders and recurrent models.
TEST(ModelsOnPlatforms, ModelsWithoutPagedAttentionSelectNothing) {
  Platform platform = ReadPlatform(PlatformProfiles().front()).value();
  for (const char* name :
       {"bert-base-uncased", "bge-m3", "modernbert-base", "mamba-codestral-7b"}) {
    PlanAttempt attempt = Attempt(name, platform);
    ASSERT_TRUE(attempt.plan) << name << ": " << Text(attempt.problems);
    EXPECT_EQ(attempt.plan->selector_calls, 0) << name;
  }
}

}  // namespace
}  // namespace ashlar
