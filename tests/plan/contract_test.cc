// What whoever carries a plan out may rely on, from the first choice to the line in the log.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/plan.h"
#include "plan/select.h"
#include "support/plan_builders.h"

namespace ashlar {
namespace {

using namespace ashlar::testing;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Plan Made(const Spec& spec, const Platform& platform, const ModelConfig& model) {
  Result<Plan> plan = MakePlan(spec, platform, model, {});
  if (!plan.ok()) ADD_FAILURE() << Text(plan.problems());
  return plan.ok() ? std::move(*plan) : Plan{};
}

ModelConfig LatentModel() {
  LayerSpec layer = FullLayer(16, 1, 576);
  layer.kind = KvKind::kMla;
  layer.head_dim_v = 0;
  ModelConfig model = DenseModel();
  model.layers.assign(4, layer);
  return model;
}

AttentionRow LatentRow() {
  AttentionRow row = AnyRow("LATENT", {Exact(64)}, "cuda");
  row.kinds = {KvKind::kMla};
  row.mla = true;
  return row;
}

TEST(Contract, LatentAttentionHasARowOrIsSeenToHaveNone) {  // RC-2
  Platform gpu = CpuPlatform();
  gpu.devices = {CudaDevice(90)};
  gpu.rows = {LatentRow()};
  EXPECT_EQ(Made(BasicSpec(), gpu, LatentModel()).groups[0].attention[0].backend(), "LATENT");

  Plan host = Made(BasicSpec(), CpuPlatform(), LatentModel());
  EXPECT_EQ(host.groups[0].attention[0].backend(), "(op-driven)");
  EXPECT_THAT(SelectionLines(host).front(),
              AllOf(HasSubstr(" backend=(op-driven) "),
                    HasSubstr(" reason=\"no MLA backend registered\" ")));
}

TEST(Contract, SevenGroupsHaveSevenNamesAndRows) {  // RC-8
  Platform platform = CpuPlatform();
  platform.rows.clear();
  Spec spec = BasicSpec();
  ModelConfig model = DenseModel();
  model.layers = {FullLayer()};
  for (int i = 1; i < 7; ++i) model.layers.push_back(SlidingLayer(128 * i));
  std::vector<std::string> names = {"full_attention"}, expected, found;
  for (int i = 1; i < 7; ++i)
    names.push_back(i == 1 ? "sliding_window" : "sliding_window-" + std::to_string(i));
  for (size_t i = 0; i < names.size(); ++i) {
    std::string row = "ROW_" + std::to_string(i);
    platform.rows.push_back(AnyRow(row));
    spec.backends[names[i]].use = row;
    expected.push_back(names[i] + " " + row);
  }
  for (const KvGroup& group : Made(spec, platform, model).groups)
    found.push_back(group.name + " " + group.attention.front().row);
  EXPECT_EQ(found, expected);
}

TEST(Contract, AMissingBackendIsNotABrokenOne) {  // RC-9
  Catalogue missing{{AnyRow("A")}, {"A"}, {}};
  Catalogue broken{{AnyRow("A")}, {}, {{"A", RefusalReason::kLoadFailure, "undefined symbol: x"}}};
  AttentionRequest request = RequestFor(BasicSpec(), "cpu", DType::kF32, FullLayer(), DType::kBF16);
  auto problem = [&](const Catalogue& catalogue) {
    Origins origins;
    return Select(catalogue, request, CpuTarget(), {}, kRankRules, "full_attention", origins)
        .problem.Text();
  };
  EXPECT_THAT(problem(missing),
              AllOf(HasSubstr("A: plugin not installed"), HasSubstr("install libashlar_cpu.so"),
                    Not(HasSubstr("undefined symbol"))));
  EXPECT_THAT(problem(broken),
              AllOf(HasSubstr("undefined symbol: x"), Not(HasSubstr("not installed"))));
}

TEST(Contract, ABrokenPluginIsNamedWithItsFault) {  // RC-9
  Platform platform = CpuPlatform();
  platform.rows.clear();
  platform.probes[2] = {"cpu", ProbeOutcome::kBroken, "libashlar_cpu.so: another ABI", ""};
  std::string text = Text(TryPlan(BasicSpec(), platform, DenseModel(), {}).problems);
  EXPECT_THAT(text, HasSubstr("CPU_PAGED: cannot be loaded (libashlar_cpu.so: another ABI)"));
  EXPECT_THAT(text, HasSubstr("REFERENCE: plugin not installed"));
}

TEST(Contract, ARowIsDeclaredAlikeOnEveryMachine) {  // RC-10
  for (const std::string& profile : PlatformProfiles()) {
    const Platform platform = ReadPlatform(profile).value();
    for (const AttentionRow& row : platform.rows) {
      auto known =
          std::find_if(KnownRows().begin(), KnownRows().end(),
                       [&](const AttentionRow& candidate) { return candidate.name == row.name; });
      ASSERT_NE(known, KnownRows().end()) << row.name;
      EXPECT_EQ(row, *known) << profile;
    }
  }
}

}  // namespace
}  // namespace ashlar
