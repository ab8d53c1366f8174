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
             {"page", {{"headSlots", 2}}},
             {"attention", {{{"index", 0}}}}}}}};
}

std::string Refusal(const std::string& text) {
  Result<Json> plan = ParsePlanDocument(text, "a.plan");
  return plan.ok() ? "" : Text(plan.problems());
}

TEST(PlanDocument, YamlAndJsonAreTheSameValue) {
  EXPECT_EQ(*ParsePlanDocument(Document().dump(2), "a"), Document());
  EXPECT_EQ(*ParsePlanDocument(YamlOf(Document()), "a"), Document());
}

TEST(PlanDocument, IsTakenOutOfAStatus) {
  Json status = {{"phase", "serving"}, {"plan", Document()}};
  EXPECT_EQ(*ParsePlanDocument(status.dump(), "a"), Document());
}

TEST(PlanDocument, SaysWhatIsMissing) {
  for (const char* member : {"hash", "layout", "hashBlockSize", "kvGroups"}) {
    Json plan = Document();
    plan.erase(member);
    EXPECT_THAT(Refusal(plan.dump()), HasSubstr(std::string("a.plan: no usable ") + member));
    plan[member] = Json::object();
    EXPECT_THAT(Refusal(plan.dump()), HasSubstr(std::string("no usable ") + member));
  }
  Json plan = Document();
  plan["kvGroups"][0].erase("page");
  EXPECT_THAT(Refusal(plan.dump()), HasSubstr("no usable page"));
  for (const char* text : {"", "[]", "7", "{", "- a", "kvGroups: &a [*a]", "{\"a\":1}x"})
    EXPECT_NE(Refusal(text), "") << text;
}

}  // namespace
}  // namespace ashlar
