#include "plan/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/plan_builders.h"

namespace ashlar {
namespace {

using testing::AnyRow;
using ::testing::ElementsAre;
using testing::Exact;
using testing::ExactManagerRow;
using testing::Multiple;

JointGroup Group(std::string name, std::vector<std::vector<const AttentionRow*>> choices) {
  return {std::move(name), std::move(choices)};
}

std::vector<std::string> Names(const JointResult& result) {
  std::vector<std::string> names;
  if (!result.choice) return names;
  for (const auto& rows : result.choice->rows) {
    for (const AttentionRow* row : rows) names.push_back(row->name);
  }
  return names;
}

TEST(SearchJointly, GivesUpRankForASizeThatSuitsAll) {
  AttentionRow fast = AnyRow("FAST", {Exact(24)}), slow = AnyRow("SLOW", {Multiple(16)});
  AttentionRow other = ExactManagerRow("OTHER", {64});
  JointResult result =
      SearchJointly({{Group("a", {{&fast, &slow}}), Group("b", {{&other}})}, 0, {}});
  ASSERT_TRUE(result.choice);
  EXPECT_EQ(result.choice->tokens, 64);
  EXPECT_THAT(Names(result), ElementsAre("SLOW", "OTHER"));
}

TEST(SearchJointly, TakesTheSmallestBlockThenTheLeastRank) {
  AttentionRow a = AnyRow("A", {Exact(128)}), b = AnyRow("B", {Exact(32)}),
               c = AnyRow("C", {Multiple(32)});
  JointResult result = SearchJointly({{Group("g", {{&a, &b, &c}})}, 0, {}});
  EXPECT_EQ(result.choice->tokens, 32);
  EXPECT_THAT(Names(result), ElementsAre("B"));
}

TEST(SearchJointly, FindsRowsOfOneGroupWithACommonKernelBlock) {
  AttentionRow a = AnyRow("A", {Exact(32)}), b = AnyRow("B", {Exact(48)}),
               c = AnyRow("C", {Exact(16), Exact(32)});
  JointResult result = SearchJointly({{Group("g", {{&a}, {&b, &c}})}, 0, {}});
  EXPECT_EQ(result.choice->tokens, 32);
  EXPECT_THAT(Names(result), ElementsAre("A", "C"));
}

TEST(SearchJointly, PassesOverRowsThatTakeTheBlockOnlyInOtherParts) {
  // A would read 64 tokens as two blocks of 32, C only whole.
  AttentionRow a = AnyRow("A", {Exact(32)}), b = AnyRow("B", {Multiple(16)}),
               c = AnyRow("C", {Exact(64)});
  JointResult result = SearchJointly({{Group("g", {{&a, &b}, {&c}})}, 64, {}});
  ASSERT_TRUE(result.choice);
  EXPECT_THAT(Names(result), ElementsAre("B", "C"));
}

TEST(SearchJointly, KeepsTheSizeOfTheUser) {
  AttentionRow a = AnyRow("A", {Exact(128)}), b = AnyRow("B", {Exact(48)});
  EXPECT_THAT(Names(SearchJointly({{Group("g", {{&a, &b}})}, 96, {}})), ElementsAre("B"));
  EXPECT_FALSE(SearchJointly({{Group("g", {{&a, &b}})}, 32, {}}).choice);
}

TEST(SearchJointly, LooksAtTheBlockThatStatesMakeOfIt) {
  // 544 tokens hold the state; A takes only powers of two as a whole.
  AttentionRow a = ExactManagerRow("A", {16, 512}), b = AnyRow("B", {Multiple(32)});
  StateNeed states{1'097'728, 2048, 0, 0};
  JointResult result = SearchJointly({{Group("g", {{&a, &b}})}, 0, states});
  ASSERT_TRUE(result.choice);
  EXPECT_EQ(result.choice->requested, 16);
  EXPECT_EQ(result.choice->tokens, 544);
  EXPECT_THAT(Names(result), ElementsAre("B"));
}

TEST(SearchJointly, NamesTheGroupsThatCannotMeet) {
  AttentionRow a = ExactManagerRow("A", {24}), b = AnyRow("B", {Multiple(16)}),
               c = AnyRow("C", {Multiple(8)});
  JointResult result = SearchJointly(
      {{Group("first", {{&a}}), Group("easy", {{&c}}), Group("second", {{&b}})}, 0, {}});
  EXPECT_FALSE(result.choice);
  EXPECT_THAT(result.core, ElementsAre("group first (A needs exactly 24)",
                                       "group second (B needs a multiple of 16)"));
}

TEST(SearchJointly, ManyAttentionGroupsDoNotMultiply) {
  std::vector<AttentionRow> rows;
  for (int i = 0; i < 12; ++i) rows.push_back(AnyRow("R" + std::to_string(i), {Exact(16 + 8 * i)}));
  std::vector<const AttentionRow*> all;
  for (const AttentionRow& row : rows) all.push_back(&row);
  JointResult result =
      SearchJointly({{Group("g", std::vector<std::vector<const AttentionRow*>>(40, all))}, 0, {}});
  EXPECT_EQ(result.choice->tokens, 16);
}

}  // namespace
}  // namespace ashlar
