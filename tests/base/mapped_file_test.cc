#include "base/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace ashlar {
namespace {

using testing::HasSubstr;

TEST(MappedFile, ShowsTheBytes) {
  std::string path = testing::TempDir() + "mapped_file_test";
  std::ofstream(path) << "ashlar";
  Result<MappedFile> file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->bytes().size(), 6u);
  EXPECT_EQ(file->CurrentSize(), 6);
  std::ofstream(path) << "x";
  EXPECT_EQ(file->CurrentSize(), 1);
}

TEST(MappedFile, RefusesWhatIsNoFile) {
  EXPECT_THAT(Text(MappedFile::Open("/nonexistent").problems()), HasSubstr("No such file"));
  EXPECT_THAT(Text(MappedFile::Open("/tmp").problems()), HasSubstr("not a regular file"));
}

TEST(ReadTextFile, RefusesMoreThanTheLimit) {
  std::string path = testing::TempDir() + "read_text_test";
  std::ofstream(path) << std::string(11, 'x');
  EXPECT_THAT(Text(ReadTextFile(path, 10).problems()), HasSubstr("at most 10 bytes"));
  EXPECT_EQ(ReadTextFile(path, 11)->size(), 11u);
}

}  // namespace
}  // namespace ashlar
