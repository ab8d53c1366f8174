#include "serve/checks.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/mapped_file.h"

namespace ashlar {
namespace {

TEST(Checks, AreInTheOrderOfTheEnum) {
  for (size_t i = 0; i < kChecks.size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(kChecks[i].check), i) << kChecks[i].name;
  }
}

TEST(Checks, StandInTheDocumentation) {
  std::string page = ReadTextFile(ASHLAR_SOURCE_DIR "/docs/operations.md", 1 << 20).value();
  for (const CheckInfo& info : kChecks) {
    std::string row = fmt::format("| `{}` | {} | {} | {} |", info.name, info.condition, info.reason,
                                  info.meaning);
    EXPECT_NE(page.find(row), std::string::npos) << row;
  }
}

TEST(Readiness, NamesTheFirstCheckThatHasNotPassed) {
  Readiness readiness;
  EXPECT_EQ(readiness.snapshot().blocker, "spec");
  readiness.Pass(ReadyCheck::kSpec);
  EXPECT_EQ(readiness.snapshot().blocker, "source");
}

TEST(Readiness, NamesTheFailedCheckBeforeOnesNotReached) {
  Readiness readiness;
  readiness.Pass(ReadyCheck::kSpec);
  readiness.FailWith(ReadyCheck::kBackends, {{"group", "no backend", "", ""}});
  EXPECT_EQ(readiness.snapshot().blocker, "backends");
  EXPECT_EQ(readiness.snapshot().problems[3][0].found, "no backend");
}

TEST(Readiness, IsReadyOnlyWithEveryCheckAndTheReadyPhase) {
  Readiness readiness;
  for (const CheckInfo& info : kChecks) readiness.Pass(info.check);
  readiness.SetPhase(Phase::kLoading);
  EXPECT_FALSE(readiness.snapshot().ready);
  EXPECT_EQ(readiness.snapshot().blocker, "loading");
  readiness.SetPhase(Phase::kReady);
  EXPECT_TRUE(readiness.snapshot().ready);
  EXPECT_EQ(readiness.snapshot().blocker, "");
  readiness.SetPhase(Phase::kDraining);
  EXPECT_FALSE(readiness.snapshot().ready);
  EXPECT_EQ(readiness.snapshot().blocker, "draining");
}

TEST(Readiness, CountsAFailureOnceUntilItIsMended) {
  Readiness readiness;
  readiness.FailWith(ReadyCheck::kEngine, {{"a", "b", "", ""}});
  readiness.FailWith(ReadyCheck::kEngine, {{"a", "b", "", ""}});
  EXPECT_EQ(readiness.snapshot().failures[8], 1);
  readiness.Pass(ReadyCheck::kEngine);
  readiness.FailWith(ReadyCheck::kEngine, {{"a", "b", "", ""}});
  EXPECT_EQ(readiness.snapshot().failures[8], 2);
}

}  // namespace
}  // namespace ashlar
