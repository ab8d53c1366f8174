// Offline is online: the plan made from a capture is the plan of the start that took it.
#include <gtest/gtest.h>

#include "probe/platform.h"
#include "support/plan_builders.h"
#include "support/spec_fake_root.h"

namespace ashlar {
namespace {

// The platform as another machine reads it from the file of `ashlar probe --capture`.
Platform Carried(const Platform& platform) {
  FakeRoot other_machine;
  other_machine.Write("/node.json", ToJson(platform).dump(2) + "\n");
  Result<Platform> read = ReadPlatform(other_machine.path() + "/node.json");
  EXPECT_TRUE(read.ok()) << Text(read.problems());
  return read.ok() ? *std::move(read) : Platform();
}

// A plan and all that is printed of it, or its problems.
std::string PlanOn(const Platform& platform, const ModelConfig& model) {
  Result<Plan> plan = MakePlan(testing::BasicSpec(), platform, model, {.bytes = 100 << 20});
  if (!plan.ok()) return Text(plan.problems());
  return plan->hash + "\n" + ToJson(*plan).dump(1) + "\n" + ToYaml(*plan) + "\n" + ToText(*plan);
}

TEST(Replay, ThePlanOfACaptureIsThePlanOfItsStart) {
  const Platform here =
      ProbePlatform({.plugin_directory = ASHLAR_BUILD_DIR "/lib/ashlar", .root = ""});
  ASSERT_FALSE(here.rows.empty()) << "no plugin in this build";
  const Platform there = Carried(here);
  EXPECT_EQ(there, here);
  for (const ModelConfig& model : {testing::DenseModel(), testing::HybridModel()}) {
    const std::string plan = PlanOn(here, model);
    EXPECT_EQ(PlanOn(there, model), plan);
    EXPECT_NE(plan.find("kvGroups"), std::string::npos) << plan;
  }
}

TEST(Replay, HoldsForEveryProfile) {
  for (const std::string& name : PlatformProfiles()) {
    const Platform profile = *ReadPlatform(name);
    EXPECT_EQ(PlanOn(Carried(profile), testing::DenseModel()),
              PlanOn(profile, testing::DenseModel()))
        << name;
  }
}

}  // namespace
}  // namespace ashlar
