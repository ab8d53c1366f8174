#include "plan/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/yaml.h"

namespace ashlar {
namespace {

using testing::HasSubstr;

Json Document() {
  return {{"hash", "00ff"},
          {"layout", "LBHNC"},
          {"hashBlockSize", 16},
          {"scale", 0.5},
          {"empty", ""},
          {"digits", "12"},
          {"kvGroups",
           {{{"name", "full_attention"},
             {"kind", "full_attention"},
             {"window", 0},
             {"dtype", "bfloat16"},
             {"layers", {0, 1}},
             {"blockSize", 16},
             {"kernelBlockSize", 16},
             {"page", {{"headSlots", 2}, {"states", 16}, {"contentBytes", 128}}},
             {"strides", {40960, 4096, 2048, 128, 1}},
             {"attention", {{{"index", 0}, {"backend", "A"}}}}}}}};
}

std::string Refusal(const std::string& text) {
  Result<Json> plan = ParsePlanDocument(text, "a.plan");
  return plan.ok() ? "" : Text(plan.problems());
}

TEST(PlanDocument, YamlAndJsonAreTheSameValue) {
  EXPECT_EQ(*ParsePlanDocument(Document().dump(2), "a"), Document());
  EXPECT_EQ(*ParsePlanDocument(YamlOf(Document()), "a"), Document());
}

TEST(PlanDocument, ANumberThatNothingHoldsIsText) {
  std::string yaml = YamlOf(Document()) + "more: 2e8369920\n";
  EXPECT_EQ((*ParsePlanDocument(yaml, "a"))["more"], "2e8369920");
}

TEST(PlanDocument, IsTakenOutOfAStatus) {
  Json status = {{"phase", "serving"}, {"plan", Document()}};
  EXPECT_EQ(*ParsePlanDocument(status.dump(), "a"), Document());
}

TEST(PlanDocument, WithoutALayoutIsReadWhereBlocksAreOneRun) {
  Json plan = Document();
  plan.erase("layout");
  EXPECT_EQ((*ParsePlanDocument(plan.dump(), "a"))["layout"], "unstated");
  plan["kvGroups"][0]["strides"] = {40960, 2048, 20480, 128, 1};  // heads apart, as in LHBNC
  EXPECT_EQ(Refusal(plan.dump()),
            "a.plan: no layout is stated, and a block of group full_attention lies in 2 pieces "
            "(strides 40960, 2048, 20480, 128, 1): a layout, or blocks of one piece; state layout: "
            "LHBNC or BHLNC");
  for (const Json& strides : {Json(), Json({1, 2}), Json({1, 2, 3, 4, "5"})}) {
    plan["kvGroups"][0]["strides"] = strides;
    EXPECT_THAT(Refusal(plan.dump()), HasSubstr("no layout, and no usable strides"));
  }
}

TEST(PlanDocument, SaysWhatIsMissing) {
  for (const char* member : {"hash", "layout", "hashBlockSize", "kvGroups"}) {
    Json plan = Document();
    plan[member] = Json::object();
    EXPECT_THAT(Refusal(plan.dump()), HasSubstr(std::string("a.plan: no usable ") + member));
    plan.erase(member);
    EXPECT_EQ(Refusal(plan.dump()).empty(), std::string_view(member) == "layout") << member;
  }
  Json plan = Document();
  plan["kvGroups"][0]["page"]["headSlots"] = "2";
  EXPECT_THAT(Refusal(plan.dump()), HasSubstr("no usable headSlots"));
  plan["kvGroups"][0].erase("page");
  EXPECT_THAT(Refusal(plan.dump()), HasSubstr("no usable page"));
  for (int64_t size : {int64_t{0}, int64_t{-16}, int64_t{1} << 40}) {
    plan = Document();
    plan["kvGroups"][0]["blockSize"] = size;
    EXPECT_THAT(Refusal(plan.dump()), HasSubstr("no usable blockSize"));
    plan = Document();
    plan["kvGroups"][0]["page"]["states"] = size << 20;
    plan["kvGroups"][0]["page"]["contentBytes"] = 1 << 20;
    EXPECT_THAT(Refusal(plan.dump()), HasSubstr("no usable page"));
  }
  plan = Document();
  plan["kvGroups"][0]["attention"] = {5};
  EXPECT_THAT(Refusal(plan.dump()), HasSubstr("no usable object"));
  plan["kvGroups"][0]["attention"] = {{{"backend", 5}}};
  EXPECT_THAT(Refusal(plan.dump()), HasSubstr("no usable backend"));
  for (const char* text : {"", "[]", "7", "{", "- a", "kvGroups: &a [*a]", "{\"a\":1}x"})
    EXPECT_NE(Refusal(text), "") << text;
}

}  // namespace
}  // namespace ashlar
