#include "operator-hooks/pod_status.h"

#include <gmock/gmock.h>

#include "checkpoint/checkpoint.h"
#include "model/config.h"
#include "plan/plan.h"
#include "probe/profiles.h"
#include "spec/spec.h"
#include "support/hooks_cluster.h"

namespace ashlar::hooks {
namespace {

TEST(PodStatus, ReadsThePlanThatTheRuntimeWrites) {
  Spec spec = LoadSpec("source: {builtin: demo}", "demo").value();
  Checkpoint checkpoint = OpenBuiltinCheckpoint("demo").value();
  ModelConfig config = ReadModelConfig(checkpoint).value();
  Plan plan = MakePlan(spec, *FindProfile("cpu-avx2"), config, {checkpoint.total_bytes()}).value();
  PodStatus pod = ReadPod("10.0.0.1", {{"plan", ToJson(plan)}});
  EXPECT_EQ(pod.hostname, "cpu-avx2");
  EXPECT_EQ(pod.platform, "cpu");
  EXPECT_EQ(pod.layout, Name(plan.layout));
  ASSERT_EQ(pod.groups.size(), plan.groups.size());
  for (size_t i = 0; i < pod.groups.size(); ++i) {
    EXPECT_EQ(pod.groups[i].name, plan.groups[i].name);
    EXPECT_EQ(pod.groups[i].kind, Name(plan.groups[i].kind));
    EXPECT_EQ(pod.groups[i].backend, plan.groups[i].attention[0].row);
    EXPECT_EQ(pod.groups[i].block_tokens, plan.groups[i].block_tokens);
    EXPECT_EQ(pod.groups[i].layers, static_cast<int64_t>(plan.groups[i].layers.size()));
    EXPECT_EQ(pod.groups[i].bytes, plan.groups[i].bytes());
  }
}

TEST(PodStatus, RowsOfOtherDevicesAreNoNews) {
  PodStatus pod = Pod("10.0.0.1", "demo-1", "d");
  ASSERT_EQ(pod.groups[0].rejected.size(), 1u);
  EXPECT_EQ(pod.groups[0].rejected[0].backend, "CPU_WINDOW");
}

TEST(PodStatus, WhateverAPodAnswersStaysSmall) {
  Json plan = PodPlan("demo-1", 16);
  for (int i = 0; i < 100; ++i) plan["kvGroups"].push_back(plan["kvGroups"][0]);
  Json check = {{"name", "spec"},
                {"state", "failed"},
                {"problems", {{{"message", std::string(100'000, 'x')}}}}};
  PodStatus pod = ReadPod("10.0.0.1", {{"plan", plan}, {"checks", Json::array({check})}});
  EXPECT_LE(pod.groups.size(), 16u);
  EXPECT_LE(pod.checks[0].message.size(), 600u);
}

TEST(PodStatus, OtherTypesAreProblemsAndNothingElse) {
  for (const char* text : {"7", "[]", "{\"plan\":7}", "{\"checks\":{}}",
                           "{\"plan\":{\"kvGroups\":[7,{\"attention\":\"x\"}]}}"}) {
    JsonParser parser;
    Problems problems;
    std::string body = text;
    ReadPodStatus(parser.Parse(body, "pod").value(), "10.0.0.1", problems);
    EXPECT_FALSE(problems.empty()) << text;
  }
}

}  // namespace
}  // namespace ashlar::hooks
