#include "probe/root_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>

#include "support/spec_fake_root.h"

namespace ashlar {
namespace {

using testing::ElementsAre;

TEST(RootFiles, ReadsBelowItsPrefix) {
  FakeRoot root;
  root.Write("/proc/a", " 42 \n");
  RootFiles files(root.path());
  EXPECT_EQ(files.Read("/proc/a"), " 42 \n");
  EXPECT_EQ(files.ReadWord("/proc/a"), "42");
  EXPECT_EQ(files.ReadNumber("/proc/a"), 42);
  EXPECT_EQ(files.Read("/proc/b"), std::nullopt);
  EXPECT_EQ(files.Read("/proc"), std::nullopt);
}

TEST(RootFiles, ReadsNoMoreThanAMebibyte) {
  FakeRoot root;
  root.Write("/big", std::string((1 << 20) + 5, 'x'));
  EXPECT_EQ(RootFiles(root.path()).Read("/big")->size(), size_t{1} << 20);
}

TEST(RootFiles, APipeDoesNotHang) {
  FakeRoot root;
  ASSERT_EQ(mkfifo((root.path() + "/pipe").c_str(), 0600), 0);
  EXPECT_EQ(RootFiles(root.path()).Read("/pipe"), std::nullopt);
}

TEST(RootFiles, ListsInOrder) {
  FakeRoot root;
  root.Write("/d/b", "");
  root.Write("/d/a", "");
  EXPECT_THAT(RootFiles(root.path()).List("/d"), ElementsAre("a", "b"));
  EXPECT_THAT(RootFiles(root.path()).List("/none"), ElementsAre());
}

TEST(RootFiles, TellsWhyAFileDoesNotOpen) {
  FakeRoot root;
  root.Write("/dev/ok", "");
  root.Write("/dev/closed", "");
  root.Forbid("/dev/closed");
  root.MakeLoop("/dev/loop");
  RootFiles files(root.path());
  OrdinaryUser user;
  EXPECT_EQ(files.OpenError("/dev/none"), ENOENT);
  EXPECT_EQ(files.OpenError("/dev/closed"), EACCES);
  EXPECT_EQ(files.OpenError("/dev/loop"), ELOOP);
}

TEST(RootFiles, OpeningLeavesTheFileAsItIs) {
  FakeRoot root;
  root.Write("/dev/ok", "x");
  RootFiles files(root.path());
  EXPECT_EQ(files.OpenError("/dev/ok"), 0);
  EXPECT_EQ(files.Read("/dev/ok"), "x");
}

TEST(ParseNumber, TakesWholeNonNegativeNumbersOnly) {
  EXPECT_EQ(ParseNumber("0"), 0);
  EXPECT_EQ(ParseNumber("9223372036854775807"), INT64_MAX);
  for (const char* text : {"", "-1", "+1", "max", "1 ", "1.0", "0x1", "9223372036854775808"})
    EXPECT_EQ(ParseNumber(text), std::nullopt) << text;
}

}  // namespace
}  // namespace ashlar
