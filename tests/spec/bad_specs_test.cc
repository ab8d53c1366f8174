// Every file of tests/spec/bad is wrong in one way; the .txt beside it is the whole report.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "spec/spec.h"

namespace ashlar {
namespace {

namespace fs = std::filesystem;

std::string ReadAll(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::set<fs::path> BadSpecs() {
  std::set<fs::path> files;
  for (const auto& entry : fs::directory_iterator(ASHLAR_SOURCE_DIR "/tests/spec/bad")) {
    if (entry.path().extension() == ".yaml") files.insert(entry.path());
  }
  return files;
}

TEST(BadSpecs, AreAtLeastForty) { EXPECT_GE(BadSpecs().size(), 40u); }

// LO-05.
TEST(BadSpecs, EachYieldsOneExactMessageOfFourParts) {
  for (const fs::path& path : BadSpecs()) {
    SCOPED_TRACE(path.filename().string());
    Result<Spec> spec = LoadSpec(ReadAll(path), path.filename());
    if (spec.ok()) {
      ADD_FAILURE() << "accepted";
      continue;
    }
    EXPECT_EQ(Text(spec.problems()) + "\n", ReadAll(fs::path(path).replace_extension(".txt")));
    ASSERT_EQ(spec.problems().size(), 1u);
    const Problem& problem = spec.problems().front();
    EXPECT_NE(problem.place, "");
    EXPECT_NE(problem.found, "");
    EXPECT_NE(problem.allowed, "");
    EXPECT_NE(problem.next, "");
    EXPECT_THAT(problem.place, testing::HasSubstr(path.filename().string() + ":"));
  }
}

}  // namespace
}  // namespace ashlar
