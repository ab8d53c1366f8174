#include "weights/load_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace ashlar {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class LoadLogTest : public testing::Test {
 protected:
  LoadLog Make(bool terminal) {
    return LoadLog("m", {.terminal = terminal,
                         .seconds = [this] { return now_; },
                         .log = [this](std::string_view line) { lines_.emplace_back(line); },
                         .raw = [this](std::string_view bytes) { raw_.emplace_back(bytes); }});
  }

  double now_ = 100;
  std::vector<std::string> lines_, raw_;
};

TEST_F(LoadLogTest, ShortLoadIsOneLine) {
  LoadLog log = Make(false);
  for (int64_t done : {0, 256, 512, 1024}) {
    now_ += 0.01;
    log(done, 1024);
  }
  EXPECT_THAT(lines_, ElementsAre("m: loaded 1 KiB in 0.0 s"));
  EXPECT_THAT(raw_, IsEmpty());
}

TEST_F(LoadLogTest, LongLoadSpeaksAtEachTenth) {
  LoadLog log = Make(false);
  for (int percent = 1; percent <= 100; ++percent) {
    now_ += 0.1;
    log(percent, 100);
  }
  ASSERT_THAT(lines_, SizeIs(10));
  EXPECT_EQ(lines_[0], "m: 10 % of 100 B loaded");
  EXPECT_EQ(lines_[8], "m: 90 % of 100 B loaded");
  EXPECT_EQ(lines_[9], "m: loaded 100 B in 10.0 s");
}

TEST_F(LoadLogTest, SlowLoadSpeaksEveryFiveSeconds) {
  LoadLog log = Make(false);
  for (int i = 1; i <= 12; ++i) {
    now_ += 1;
    log(i, 1000);
  }
  EXPECT_THAT(lines_, SizeIs(2));
}

TEST_F(LoadLogTest, TerminalRewritesOneLineAndEndsWithALogLine) {
  LoadLog log = Make(true);
  for (int percent = 1; percent <= 100; ++percent) {
    now_ += 0.05;
    log(percent, 100);
  }
  EXPECT_GT(raw_.size(), 20u);
  EXPECT_LT(raw_.size(), 60u);
  for (const std::string& bytes : raw_) {
    EXPECT_TRUE(bytes.starts_with("\r\x1b[K"));
    EXPECT_EQ(bytes.find('\n'), std::string::npos);
  }
  EXPECT_THAT(lines_, ElementsAre("m: loaded 100 B in 5.0 s"));
}

TEST_F(LoadLogTest, NothingToLoadIsDone) {
  Make(false)(0, 0);
  EXPECT_THAT(lines_, SizeIs(1));
}

}  // namespace
}  // namespace ashlar
