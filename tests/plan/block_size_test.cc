#include "plan/block_size.h"

#include <gtest/gtest.h>

#include "support/plan_builders.h"

namespace ashlar {
namespace {

using testing::AnyRow;
using testing::Exact;
using testing::ExactManagerRow;
using testing::Multiple;

// Rows of each group; kept alive while pointers to them are in use.
class Rows {
 public:
  explicit Rows(std::vector<std::vector<AttentionRow>> groups) : rows_(std::move(groups)) {
    for (const auto& group : rows_) {
      GroupRows& rows = groups_.emplace_back();
      for (const AttentionRow& row : group) rows.push_back(&row);
    }
  }
  const std::vector<GroupRows>& groups() const { return groups_; }

  int Auto() const {
    Result<BlockChoice> choice = ChooseBlock(groups_, 0, "kv.blockSize");
    return choice.ok() ? choice->tokens : -1;
  }
  int Kernel(size_t group, int tokens) const {
    return KernelBlock(groups_[group], tokens).value_or(-1);
  }
  std::string Refusal(int tokens) const {
    Result<BlockChoice> choice = ChooseBlock(groups_, tokens, "kv.blockSize");
    return choice.ok() ? "" : Text(choice.problems());
  }

 private:
  std::vector<std::vector<AttentionRow>> rows_;
  std::vector<GroupRows> groups_;
};

AttentionRow A(std::vector<BlockRule> blocks) { return AnyRow("A", std::move(blocks)); }
AttentionRow B(std::vector<BlockRule> blocks) { return AnyRow("B", std::move(blocks)); }

TEST(BlockSize, OneRowThatTakesTheDefaultGetsIt) {  // BV-01
  Rows rows({{A({Multiple(16)})}});
  EXPECT_EQ(rows.Auto(), 16);
  EXPECT_EQ(rows.Kernel(0, 16), 16);
}

TEST(BlockSize, OneExactRowGetsItsSize) {  // BV-02, BV-03
  EXPECT_EQ(Rows({{A({Exact(64)})}}).Auto(), 64);
  EXPECT_EQ(Rows({{A({Exact(64)})}}).Kernel(0, 64), 64);
  EXPECT_EQ(Rows({{A({Exact(128)})}}).Auto(), 128);
}

TEST(BlockSize, OneRowWithSeveralSizesGetsTheSmallest) {  // BV-04
  EXPECT_EQ(Rows({{A({Exact(32), Exact(64)})}}).Auto(), 32);
}

TEST(BlockSize, SuitsEveryRowOfAGroup) {  // BV-05
  Rows rows({{A({Exact(32), Exact(64)}), B({Exact(64)})}});
  EXPECT_EQ(rows.Auto(), 64);
  EXPECT_EQ(rows.Kernel(0, 64), 64);
}

TEST(BlockSize, SuitsEveryGroup) {  // BV-06
  EXPECT_EQ(Rows({{A({Multiple(16)})}, {B({Exact(128)})}}).Auto(), 128);
}

TEST(BlockSize, IsNotRaisedPastAnExactManager) {  // BV-07
  Rows rows({{A({Exact(32), Exact(48)}), ExactManagerRow("B", {48})}});
  EXPECT_EQ(rows.Auto(), 48);
  EXPECT_EQ(rows.Kernel(0, 48), 48);
}

TEST(BlockSize, TakesTheCommonMultipleOfTwoGroups) {  // BV-08
  Rows rows({{A({Exact(32)})}, {B({Exact(48)})}});
  EXPECT_EQ(rows.Auto(), 96);
  EXPECT_EQ(rows.Refusal(96), "");
  EXPECT_EQ(rows.Kernel(0, 96), 32);
  EXPECT_EQ(rows.Kernel(1, 96), 48);
}

TEST(BlockSize, RefusesRowsOfOneGroupWithoutACommonKernelBlock) {  // BV-09
  Rows rows({{A({Exact(32)}), B({Exact(48)})}});
  EXPECT_EQ(rows.Kernel(0, 96), -1);
  EXPECT_EQ(rows.Refusal(96),
            "kv.blockSize: 96 is not usable: no common kernel block in one group: A takes kernel "
            "blocks of 32, B takes kernel blocks of 48; choose other backends");
  EXPECT_EQ(rows.Auto(), -1);
}

TEST(BlockSize, RefusesMultipleBesideExactThatIsNone) {  // BV-10
  Rows rows({{A({Multiple(16)}), B({Exact(24)})}});
  EXPECT_TRUE(SupportsBlock(*rows.groups()[0][0], 48));
  EXPECT_TRUE(SupportsBlock(*rows.groups()[0][1], 48));
  EXPECT_EQ(rows.Kernel(0, 48), -1);
  EXPECT_EQ(rows.Kernel(0, 96), -1);
}

TEST(BlockSize, TwoExactSizesNeedTwoGroups) {  // BV-11, BV-12
  EXPECT_EQ(Rows({{A({Exact(128)}), B({Exact(64)})}}).Kernel(0, 128), -1);
  Rows apart({{A({Exact(128)})}, {B({Exact(64)})}});
  EXPECT_EQ(apart.Refusal(128), "");
  EXPECT_EQ(apart.Kernel(0, 128), 128);
  EXPECT_EQ(apart.Kernel(1, 128), 64);
}

TEST(BlockSize, ChangedAfterwardsNamesTheExactRow) {  // BV-13, BV-14
  Rows rows({{ExactManagerRow("EXACT", {16})}, {A({Multiple(16)})}});
  EXPECT_EQ(RejectingRows(rows.groups(), 16), std::vector<std::string>());
  EXPECT_EQ(RejectingRows(rows.groups(), 32), std::vector<std::string>{"EXACT"});
  EXPECT_EQ(RejectingRows(rows.groups(), 64), std::vector<std::string>{"EXACT"});
}

TEST(BlockSize, TwoExactManagersThatDifferAreRefusedByName) {  // BV-15
  Rows rows({{ExactManagerRow("A", {16}), ExactManagerRow("B", {24})}});
  EXPECT_EQ(rows.Refusal(0),
            "kv.blockSize: no block size suits every backend: A needs exactly 16, B needs exactly "
            "24; choose other backends");
}

TEST(BlockSize, AnExactManagerRefusesItsMultiples) {  // BV-16
  Rows rows({{ExactManagerRow("A", {16})}});
  EXPECT_FALSE(SupportsBlock(*rows.groups()[0][0], 64));
  EXPECT_EQ(rows.Kernel(0, 64), 16);
  EXPECT_EQ(rows.Refusal(64), "kv.blockSize: 64 is not usable: A needs exactly 16; use 16");
}

TEST(BlockSize, KernelBlockIsTheWholeBlockWhenAllTakeIt) {  // BV-17
  EXPECT_EQ(Rows({{A({Multiple(32)}), B({Exact(64), Multiple(16)})}}).Kernel(0, 128), 128);
}

TEST(BlockSize, KernelBlockIsTheLargestSharedSize) {  // BV-18
  Rows rows({{A({Exact(128), Exact(64)}), B({Exact(64), Exact(32)})}});
  EXPECT_EQ(rows.Kernel(0, 256), 64);
}

TEST(BlockSize, KernelBlockDividesTheBlock) {  // BV-19
  Rows rows({{A({Multiple(16)}), B({Exact(32), Exact(64)})}});
  EXPECT_EQ(rows.Kernel(0, 96), 32);
  EXPECT_EQ(rows.Kernel(0, 31), -1);
}

TEST(BlockSize, RefusesSizeNoBackendSupports) {  // BV-20
  Rows rows({{AnyRow("CPU_PAGED")}});
  EXPECT_EQ(rows.Refusal(8),
            "kv.blockSize: 8 is not usable: CPU_PAGED needs a multiple of 16; use 16");
  EXPECT_EQ(rows.Refusal(24),
            "kv.blockSize: 24 is not usable: CPU_PAGED needs a multiple of 16; use 16 or 32");
  EXPECT_EQ(rows.Refusal(-16),
            "kv.blockSize: -16 is not usable: CPU_PAGED needs a multiple of 16; use 16");
}

TEST(BlockSize, AnyMultipleOfOneIsTaken) {  // BV-21
  EXPECT_EQ(Rows({{A({Multiple(1)})}}).Kernel(0, 4), 4);
  EXPECT_EQ(Rows({{A({Multiple(16)})}}).Kernel(0, 4), -1);
}

TEST(BlockSize, ExactSizesThatDoNotDivideAreRefused) {  // BV-30
  EXPECT_EQ(Rows({{A({Exact(128)})}}).Kernel(0, 544), -1);
  EXPECT_EQ(Rows({{A({Exact(64)})}}).Kernel(0, 528), -1);
}

TEST(BlockSize, PowersOfTwoGiveTheLargestDivisor) {  // BV-37, BV-23
  Rows rows(
      {{A({Exact(16), Exact(32), Exact(64), Exact(128), Exact(256), Exact(512), Exact(1024)})}});
  EXPECT_EQ(rows.Kernel(0, 1056), 32);
  EXPECT_EQ(rows.Kernel(0, 768), 256);
  EXPECT_EQ(Rows({{A({Exact(16), Exact(32), Exact(64)})}}).Kernel(0, 544), 32);
}

TEST(BlockSize, AnEmptyListTakesNoKernelBlock) {
  EXPECT_EQ(Rows({{A({})}}).Kernel(0, 16), -1);
  EXPECT_EQ(KernelBlock({}, 16), 16);
}

TEST(BlockSize, SharedPreferenceWins) {
  AttentionRow a = AnyRow("A"), b = AnyRow("B");
  a.preferred_block = b.preferred_block = 32;
  EXPECT_EQ(Rows({{a}, {b}}).Auto(), 32);
  b.preferred_block = 64;
  EXPECT_EQ(Rows({{a}, {b}}).Auto(), 16);
  EXPECT_EQ(Rows({{a}}).Auto(), 32);
}

TEST(BlockSize, StepsSayWhy) {
  AttentionRow a = AnyRow("A"), b = AnyRow("B");
  a.preferred_block = b.preferred_block = 32;
  Rows rows({{a}, {b}});
  Result<BlockChoice> choice = ChooseBlock(rows.groups(), 0, "kv.blockSize");
  ASSERT_TRUE(choice.ok());
  ASSERT_EQ(choice->steps.size(), 2u);
  EXPECT_EQ(choice->steps[0].stage, "requested");
  EXPECT_EQ(choice->steps[0].reason, "auto");
  EXPECT_EQ(choice->steps[1].stage, "preferred");
  EXPECT_EQ(choice->steps[1].reason, "A and B prefer it");
}

TEST(BlockSize, NamesEveryRowThatRefuses) {
  Rows rows({{AnyRow("A")}, {AnyRow("B")}, {AnyRow("C", {Exact(64), Exact(96)})}});
  EXPECT_EQ(rows.Refusal(24),
            "kv.blockSize: 24 is not usable: A and B need a multiple of 16, C needs a multiple of "
            "64 or 96; use 64");
}

TEST(BlockSize, OfEveryKnownRowIsTakenOrRefusedByName) {  // BK-01
  for (const AttentionRow& row : KnownRows()) {
    for (int tokens : {8, 64, 128, 544}) {
      Rows rows({{row}});
      std::string refusal = rows.Refusal(tokens);
      bool takes = SupportsBlock(row, tokens) && rows.Kernel(0, tokens) > 0;
      EXPECT_EQ(refusal.empty(), takes) << row.name << " " << tokens;
      EXPECT_TRUE(takes || refusal.find(row.name) != std::string::npos) << refusal;
    }
  }
}

// Groups of one model with rows of their own: none is asked for another's block.
TEST(BlockSize, OfEachGroupIsItsOwnRowsMatter) {  // BV-33
  AttentionRow latent = AnyRow("LATENT", {Multiple(16)}),
               compressor = AnyRow("STATE", {Multiple(1)}),
               window = AnyRow("WINDOW", {Multiple(64)}), index = AnyRow("INDEX", {Exact(256)});
  EXPECT_EQ(KernelBlock({&index}, 256), 256);
  EXPECT_EQ(KernelBlock({&window}, 64), 64);
  EXPECT_EQ(KernelBlock({&compressor}, 4), 4);
  EXPECT_EQ(KernelBlock({&compressor}, 8), 8);
  EXPECT_FALSE(SupportsBlock(latent, 4));
}

TEST(BlockSize, AHugeSizeEndsTheSearch) {
  Rows rows({{AnyRow("A", {Exact(48)})}});
  EXPECT_EQ(rows.Refusal(2'000'000'000),
            "kv.blockSize: 2000000000 is not usable: A needs a multiple of 48; use 65520");
}

TEST(Granularity, IsDivisorAndMultiple) {  // BV-32
  std::optional<Granularity> units = GranularityOf({1536, 3456});
  ASSERT_TRUE(units);
  EXPECT_EQ(units->scheduler, 13'824);
  EXPECT_EQ(units->hash, 384);
  EXPECT_EQ(GranularityOf({32, 32})->scheduler, 32);
  EXPECT_EQ(GranularityOf({32, 32})->hash, 32);
}

TEST(PreferredBlock, IsWhatTheRowAccepts) {
  AttentionRow row = AnyRow("A", {Multiple(16)});
  row.preferred_block = 32;
  EXPECT_EQ(PreferredBlock(row, 16), 32);
  row.preferred_block = 24;  // not its own to prefer
  EXPECT_EQ(PreferredBlock(row, 16), 16);
  EXPECT_EQ(PreferredBlock(AnyRow("B", {Exact(64), Exact(48)}), 16), 48);
}

}  // namespace
}  // namespace ashlar
