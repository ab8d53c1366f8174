#include "plan/exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ashlar {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Verdict = Exchange::Verdict;

AttentionRow Row(const std::string& name, std::vector<BlockRule> blocks,
                 std::vector<KvLayout> layouts) {
  AttentionRow row;
  row.name = name;
  row.platform = "cuda";
  row.kinds = {KvKind::kFull};
  row.kernel_blocks = std::move(blocks);
  row.layouts = std::move(layouts);
  return row;
}

const std::vector<AttentionRow> kRows = {
    Row("M16", {{16, true}}, {}),
    Row("X64", {{64, false}}, {KvLayout::kLBHNC}),
    Row("X48", {{48, false}}, {KvLayout::kLBNHC}),
    Row("NHD", {{16, true}}, {KvLayout::kLBNHC, KvLayout::kLBHNC}),
};

Json Plan(const std::string& row, int block, int kernel, const std::string& layout) {
  return {{"hash", row + std::to_string(block) + layout},
          {"layout", layout},
          {"numerics", "fast"},
          {"kvGroups",
           {{{"name", "full_attention"},
             {"kind", "full_attention"},
             {"window", 0},
             {"layers", {0, 1}},
             {"dtype", "bfloat16"},
             {"blockSize", block},
             {"kernelBlockSize", kernel},
             {"page", {{"headSlots", 8}, {"contentBytes", 512}}},
             {"attention", {{{"backend", row}}}}}}}};
}

TEST(MatchPlans, EqualHashesPass) {
  Json plan = Plan("M16", 16, 16, "LBHNC");
  EXPECT_EQ(MatchPlans(plan, plan, kRows).verdict, Verdict::kSame);
}

TEST(MatchPlans, OtherRowsOverTheSamePagesPass) {
  Json here = Plan("M16", 64, 64, "LBHNC"), there = Plan("X64", 64, 64, "LBHNC");
  Exchange exchange = MatchPlans(here, there, kRows);
  EXPECT_EQ(exchange.verdict, Verdict::kRows);
  EXPECT_THAT(exchange.differences, ElementsAre("full_attention: M16 here, X64 there"));
  for (const char* key : {"blockSize", "kernelBlockSize"}) {
    Json other = there;
    other["kvGroups"][0][key] = 128;
    EXPECT_EQ(MatchPlans(here, other, kRows).verdict, Verdict::kChange) << key;
  }
  there["kvGroups"][0]["page"]["bytes"] = 1 << 20;  // padded there
  EXPECT_EQ(MatchPlans(here, there, kRows).verdict, Verdict::kChange);
}

TEST(MatchPlans, FindsABlockAndALayoutForBoth) {
  Exchange exchange = MatchPlans(Plan("M16", 16, 16, "LBNHC"), Plan("X64", 64, 64, "LBHNC"), kRows);
  EXPECT_EQ(exchange.verdict, Verdict::kChange);
  EXPECT_EQ(exchange.block_tokens, 64);
  EXPECT_EQ(exchange.layout, KvLayout::kLBHNC);
}

TEST(MatchPlans, ABlockThatOneSideWouldSplitOtherwiseIsNotCommon) {
  // M16 takes 192 whole; X64 splits it into 64, whose pages lie one after the other.
  Exchange exchange =
      MatchPlans(Plan("M16", 192, 192, "LBHNC"), Plan("X64", 192, 64, "LBHNC"), kRows);
  EXPECT_EQ(exchange.verdict, Verdict::kChange);
  EXPECT_EQ(exchange.block_tokens, 64);
}

TEST(MatchPlans, OtherwiseSaysTheExactCopy) {
  Exchange exchange = MatchPlans(Plan("X64", 64, 64, "LBHNC"), Plan("X48", 48, 48, "LBNHC"), kRows);
  ASSERT_EQ(exchange.verdict, Verdict::kRepack);
  ASSERT_EQ(exchange.repacks.size(), 1u);
  const Exchange::Repack& repack = exchange.repacks[0];
  EXPECT_EQ(repack.unit_tokens, 192);
  EXPECT_EQ(repack.blocks_here, 3);
  EXPECT_EQ(repack.blocks_there, 4);
  EXPECT_EQ(repack.run_bytes, 512);  // one token of one head
  EXPECT_EQ(repack.runs, 192 * 8);
}

TEST(MatchPlans, TheCopyHoldsEveryByteOnce) {
  for (const char* here : {"LBHNC", "LBNHC", "LHBNC", "BLHNC", "BLNHC", "BHLNC"}) {
    for (const char* there : {"LBHNC", "LBNHC", "LHBNC", "BLHNC", "BLNHC", "BHLNC"}) {
      // No row fits, so that only a copy is left.
      Exchange exchange = MatchPlans(Plan("X64", 64, 32, here), Plan("X48", 48, 24, there), kRows);
      ASSERT_EQ(exchange.verdict, Verdict::kRepack);
      const Exchange::Repack& repack = exchange.repacks[0];
      EXPECT_EQ(repack.runs * repack.run_bytes, repack.unit_tokens * 8 * 512) << here << there;
    }
  }
}

TEST(MatchPlans, OtherContentIsNeverPassed) {
  Json here = Plan("M16", 16, 16, "LBHNC"), there = Plan("NHD", 16, 16, "LBNHC");
  there["kvGroups"][0]["dtype"] = "float16";
  there["kvGroups"][0]["page"]["headSlots"] = 4;
  Exchange exchange = MatchPlans(here, there, kRows);
  EXPECT_EQ(exchange.verdict, Verdict::kNever);
  EXPECT_THAT(exchange.differences,
              ElementsAre(HasSubstr("full_attention dtype: \"bfloat16\" here"),
                          HasSubstr("head slots: 8 here, 4 there")));
  there = here;
  there["numerics"] = "invariant";
  there["hash"] = "x";
  EXPECT_EQ(MatchPlans(here, there, kRows).verdict, Verdict::kNever);
  there["kvGroups"].push_back(there["kvGroups"][0]);
  there["kvGroups"][1]["name"] = "sliding_window";
  EXPECT_THAT(MatchPlans(here, there, kRows).differences,
              testing::Contains(HasSubstr("1 groups here, 2 there")));
}

}  // namespace
}  // namespace ashlar
