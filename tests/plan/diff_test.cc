#include "plan/diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ashlar {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> Lines(const Json& from, const Json& to) {
  std::vector<std::string> lines;
  for (const PlanChange& change : DiffPlans(from, to)) {
    lines.push_back(std::string(Name(change.kind)) + " " + change.path + ": " + change.from +
                    " -> " + change.to);
  }
  return lines;
}

Json Group(const std::string& name, int block) {
  return {{"name", name},
          {"blockSize", block},
          {"blocks", 100},
          {"page", {{"bytes", 8}}},
          {"attention",
           {{{"index", 0},
             {"backend", "A"},
             {"candidates", {{{"backend", "A"}, {"rank", 0}}, {{"backend", "B"}, {"rank", 1}}}}}}}};
}

Json Plan(std::vector<Json> groups) {
  return {{"layout", "LBHNC"}, {"kvGroups", std::move(groups)}, {"memory", {{"freeBytes", 7}}}};
}

TEST(DiffPlans, EqualPlansDoNotDiffer) {
  EXPECT_THAT(Lines(Plan({Group("f", 16)}), Plan({Group("f", 16)})), IsEmpty());
}

TEST(DiffPlans, SortsChangesByWhoMustCare) {
  Json to = Plan({Group("f", 32)});
  to["layout"] = "LBNHC";
  to["memory"]["freeBytes"] = 9;
  to["kvGroups"][0]["blocks"] = 50;
  to["kvGroups"][0]["page"]["bytes"] = 16;
  to["kvGroups"][0]["attention"][0]["backend"] = "B";
  to["kvGroups"][0]["attention"][0]["candidates"][1]["rank"] = 0;
  EXPECT_THAT(Lines(Plan({Group("f", 16)}), to),
              ElementsAre("contract layout: \"LBHNC\" -> \"LBNHC\"",
                          "contract kvGroups[f].blockSize: 16 -> 32",
                          "amount kvGroups[f].blocks: 100 -> 50",
                          "contract kvGroups[f].page.bytes: 8 -> 16",
                          "choice kvGroups[f].attention[0].backend: \"A\" -> \"B\"",
                          "choice kvGroups[f].attention[0].candidates[B].rank: 1 -> 0",
                          "amount memory.freeBytes: 7 -> 9"));
}

TEST(DiffPlans, AGroupOfOnePlanIsNoAmount) {
  auto lines = Lines(Plan({Group("f", 16)}), Plan({Group("f", 16), Group("s", 16)}));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], testing::StartsWith("contract kvGroups[s]:  -> {"));
}

TEST(DiffPlans, GroupsAreMatchedByName) {
  EXPECT_THAT(Lines(Plan({Group("f", 16), Group("s", 32)}), Plan({Group("s", 32), Group("f", 16)})),
              IsEmpty());
}

}  // namespace
}  // namespace ashlar
