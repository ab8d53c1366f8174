#include "plan/counterfactual.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "support/plan_builders.h"

namespace ashlar {
namespace {

using namespace ashlar::testing;

// FAST is tried before SLOW, by name; only its needs differ.
Platform Two(AttentionRow fast) {
  Platform platform = CpuPlatform();
  platform.rows = {std::move(fast), AnyRow("Z_SLOW")};
  return platform;
}

Plan Planned(const Spec& spec, const Platform& platform) {
  Result<Plan> plan = MakePlan(spec, platform, DenseModel(), {});
  EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : Text(plan.problems()));
  FindChanges(*plan, spec, platform, DenseModel(), {});
  return *plan;
}

std::string ChangeFor(const KvGroup& group, const std::string& row) {
  for (const Candidate& candidate : group.attention[0].candidates) {
    if (candidate.row == row) return candidate.chosen_with;
  }
  return "no such candidate";
}

std::string ChosenWith(const Spec& spec, const Platform& platform) {
  Plan plan = Planned(spec, platform);
  EXPECT_EQ(plan.groups[0].attention[0].row, "Z_SLOW");
  return ChangeFor(plan.groups[0], "FAST");
}

TEST(FindChanges, NamesTheSettingThatStandsInTheWay) {
  Spec spec = BasicSpec();
  spec.kv.block_size = 16;
  EXPECT_EQ(ChosenWith(spec, Two(AnyRow("FAST", {Exact(64)}))), "kv.blockSize: 64");

  spec = BasicSpec();
  spec.kv.dtype = "float32";
  AttentionRow halves = AnyRow("FAST");
  halves.kv_dtypes = {DType::kF16};
  EXPECT_EQ(ChosenWith(spec, Two(halves)), "kv.dtype: float16");

  spec = BasicSpec();
  spec.kv.layout = "LBNHC";
  AttentionRow heads = AnyRow("FAST");
  heads.layouts = {KvLayout::kLBHNC};
  EXPECT_EQ(ChosenWith(spec, Two(heads)), "kv.layout: auto");

  spec = BasicSpec();
  spec.invariant = true;
  AttentionRow variant = AnyRow("FAST");
  variant.batch_invariant = false;
  EXPECT_EQ(ChosenWith(spec, Two(variant)), "numerics: fast");

  spec = BasicSpec();
  spec.backends["default"].forbid = {"FAST"};
  EXPECT_EQ(ChosenWith(spec, Two(AnyRow("FAST"))), "FAST out of backends' forbid");
}

// "kv.dtype: float16" as a document: what the spec makes of it.
Result<Spec> SpecWith(const std::string& change) {
  std::string document = "source: {builtin: demo}\n", close = "\n";
  size_t from = 0;
  for (size_t dot; (dot = change.find('.', from)) != change.npos; from = dot + 1) {
    document += change.substr(from, dot - from) + ": {";
    close = "}" + close;
  }
  return LoadSpec(document + change.substr(from) + close, "m.yaml");
}

TEST(FindChanges, SuggestsOnlyWordsThatTheSpecTakes) {
  int dtypes = 0;
  for (const AttentionRow& row : KnownRows()) {
    for (DType type : row.kv_dtypes) {
      Spec spec = BasicSpec();
      spec.kv.dtype = type == DType::kF32 ? "float16" : "float32";
      AttentionRow only = AnyRow("FAST");
      only.kv_dtypes = {type};
      const std::string change = ChosenWith(spec, Two(only));
      EXPECT_EQ(change, "kv.dtype: " + std::string(Info(type).name));
      Result<Spec> taken = SpecWith(change);
      EXPECT_TRUE(taken) << row.name << ": " << (taken ? "" : Text(taken.problems()));
      ++dtypes;
    }
    EXPECT_TRUE(SpecWith("platform: " + row.platform)) << row.platform;
  }
  EXPECT_GT(dtypes, 0);
  for (const char* change : {"kv.layout: auto", "numerics: fast", "kv.blockSize: auto"})
    EXPECT_TRUE(SpecWith(change)) << change;
  EXPECT_FALSE(SpecWith("kv.dtype: float7"));
}

TEST(FindChanges, PutsTogetherWhatIsNeededAndNoMore) {
  Spec spec = BasicSpec();
  spec.kv.block_size = 16;
  spec.invariant = true;
  AttentionRow row = AnyRow("FAST", {Exact(64)});
  row.batch_invariant = false;
  EXPECT_EQ(ChosenWith(spec, Two(row)), "kv.blockSize: 64, numerics: fast");
}

TEST(FindChanges, SaysNothingWhereTheSpecCannotHelp) {
  Spec spec = BasicSpec();
  spec.kv.block_size = 16;
  AttentionRow heads = AnyRow("FAST", {Exact(64)});
  heads.head_sizes = {128};
  EXPECT_EQ(ChosenWith(spec, Two(heads)), "");
}

TEST(FindChanges, SaysNothingWhenNoPlanWouldFollow) {
  // FAST needs blocks that the row of the other group refuses.
  AttentionRow fast = AnyRow("FAST", {Exact(64)});
  fast.kinds = {KvKind::kFull};
  Platform platform = CpuPlatform();
  platform.rows = {fast, ExactManagerRow("Z_SLOW", {16})};
  Spec spec = BasicSpec();
  spec.kv.block_size = 16;
  Result<Plan> plan = MakePlan(spec, platform, HybridModel(), {});
  ASSERT_TRUE(plan.ok()) << Text(plan.problems());
  FindChanges(*plan, spec, platform, HybridModel(), {});
  EXPECT_EQ(plan->groups[1].attention[0].row, "Z_SLOW");
  EXPECT_EQ(ChangeFor(plan->groups[1], "FAST"), "");
}

TEST(FindChanges, LeavesSlowerCandidatesAlone) {
  Spec spec = BasicSpec();
  spec.kv.block_size = 16;
  Platform platform = CpuPlatform();
  platform.rows = {AnyRow("A_FIRST"), AnyRow("B_LATER", {Exact(64)})};
  Plan plan = Planned(spec, platform);
  EXPECT_EQ(plan.groups[0].attention[0].row, "A_FIRST");
  for (const Candidate& candidate : plan.groups[0].attention[0].candidates)
    EXPECT_EQ(candidate.chosen_with, "") << candidate.row;
}

TEST(FindChanges, IsShown) {
  Spec spec = BasicSpec();
  spec.invariant = true;
  AttentionRow variant = AnyRow("FAST");
  variant.batch_invariant = false;
  Plan plan = Planned(spec, Two(variant));
  EXPECT_THAT(ToText(plan), ::testing::HasSubstr("chosen with numerics: fast (planned)"));
  EXPECT_THAT(ToYaml(plan), ::testing::HasSubstr("chosenWith: \"numerics: fast\""));
}

// Whatever is said works: planning with the change chooses the row.
TEST(FindChanges, AlwaysWorks) {
  uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  auto one_in = [&](uint32_t n) { return random() % n == 0; };
  int said = 0;
  for (int round = 0; round < 60; ++round) {
    AttentionRow fast = AnyRow("FAST", {one_in(2) ? Exact(64) : Multiple(16)});
    fast.batch_invariant = one_in(2);
    if (one_in(2)) fast.kv_dtypes = {DType::kF16};
    if (one_in(2)) fast.layouts = {KvLayout::kLBHNC};
    if (one_in(4)) fast.head_sizes = {128};
    Spec spec = BasicSpec();
    if (one_in(2)) spec.kv.block_size = 16;
    if (one_in(2)) spec.kv.dtype = "bfloat16";
    if (one_in(2)) spec.kv.layout = "LBNHC";
    spec.invariant = one_in(2);
    std::string change = ChangeFor(Planned(spec, Two(fast)).groups[0], "FAST");
    if (change.empty()) continue;
    ++said;
    Spec changed = spec;
    auto has = [&](const char* text) { return change.find(text) != std::string::npos; };
    if (has("kv.blockSize: 64")) changed.kv.block_size = 64;
    if (has("kv.blockSize: auto")) changed.kv.block_size = 0;
    if (has("kv.dtype: float16")) changed.kv.dtype = "float16";
    if (has("kv.layout: auto")) changed.kv.layout = "auto";
    if (has("numerics: fast")) changed.invariant = false;
    Result<Plan> after = MakePlan(changed, Two(fast), DenseModel(), {});
    ASSERT_TRUE(after.ok()) << change;
    EXPECT_EQ(after->groups[0].attention[0].row, "FAST") << change;
  }
  EXPECT_GT(said, 5);
}

}  // namespace
}  // namespace ashlar
