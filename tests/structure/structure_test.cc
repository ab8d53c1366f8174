// Rules about the source tree itself: modules include downward only, the environment is read in one
// place, the vendor libraries have one includer each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/mapped_file.h"

namespace ashlar {
namespace {

namespace fs = std::filesystem;
const fs::path kSource = ASHLAR_SOURCE_DIR;

const std::map<std::string, int> kLevels = {
    {"base", 0},      {"spec", 1},    {"checkpoint", 1}, {"text", 1},   {"device", 1},
    {"http", 1},      {"import", 2},  {"model", 2},      {"probe", 2},  {"plan", 3},
    {"catalogue", 4}, {"weights", 4}, {"kv", 4},         {"engine", 5}, {"serve", 6},
};

bool IsSource(const fs::path& path) {
  std::string extension = path.extension();
  return extension == ".h" || extension == ".cc" || extension == ".c" || extension == ".cu";
}

std::vector<fs::path> Sources(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && IsSource(entry.path())) files.push_back(entry.path());
  }
  return files;
}

// Paths inside the quotes or brackets of #include lines.
std::vector<std::string> Includes(const fs::path& file) {
  std::vector<std::string> includes;
  std::istringstream text(ReadTextFile(file, 1 << 22).value());
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with("#include")) continue;
    size_t open = line.find_first_of("<\"");
    size_t close = line.find_first_of(">\"", open + 1);
    if (open != std::string::npos && close != std::string::npos)
      includes.push_back(line.substr(open + 1, close - open - 1));
  }
  return includes;
}

// "engine/scheduler.h includes serve/server.h" for each include that does not point downward.
std::vector<std::string> UpwardArrows(const fs::path& runtime) {
  std::vector<std::string> arrows;
  for (const fs::path& file : Sources(runtime)) {
    std::string module = *fs::relative(file, runtime).begin();
    auto from = kLevels.find(module);
    if (from == kLevels.end()) continue;  // main.cc, its neighbours and commands/ stand above all
    for (const std::string& include : Includes(file)) {
      std::string target = include.substr(0, include.find('/'));
      auto to = kLevels.find(target);
      bool own_header_of_main = to == kLevels.end() && fs::exists(runtime / include);
      bool upward = to != kLevels.end() && target != module && to->second >= from->second;
      if (upward || own_header_of_main)
        arrows.push_back(fs::relative(file, runtime).string() + " includes " + include);
    }
  }
  return arrows;
}

std::vector<std::string> FilesWith(const fs::path& folder, const std::string& word) {
  std::vector<std::string> files;
  for (const fs::path& file : Sources(folder)) {
    if (ReadTextFile(file, 1 << 22)->find(word) != std::string::npos)
      files.push_back(fs::relative(file, kSource));
  }
  return files;
}

std::vector<std::string> FilesIncluding(const fs::path& folder, const std::string& start) {
  std::vector<std::string> files;
  for (const fs::path& file : Sources(folder)) {
    for (const std::string& include : Includes(file)) {
      if (include.starts_with(start)) {
        files.push_back(fs::relative(file, kSource));
        break;
      }
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(Structure, EveryModuleHasALevel) {
  for (const auto& entry : fs::directory_iterator(kSource / "runtime")) {
    fs::path name = entry.path().filename();
    bool known = !entry.is_directory() || kLevels.contains(name) || name == "commands";
    EXPECT_TRUE(known) << entry.path();
  }
}

TEST(Structure, IncludesPointDownward) {
  EXPECT_THAT(UpwardArrows(kSource / "runtime"), testing::IsEmpty());
}

TEST(Structure, AnUpwardIncludeIsFound) {
  fs::path scratch = fs::path(testing::TempDir()) / "structure_test";
  fs::create_directories(scratch / "kv");
  std::ofstream(scratch / "kv" / "pool.cc")
      << "#include \"engine/engine.h\"\n#include \"plan/plan.h\"\n#include \"weights/weights.h\"\n";
  EXPECT_THAT(UpwardArrows(scratch), testing::ElementsAre("kv/pool.cc includes engine/engine.h",
                                                          "kv/pool.cc includes weights/weights.h"));
  fs::remove_all(scratch);
}

TEST(Structure, KernelsIncludeNothingOfTheRuntime) {
  for (const fs::path& file : Sources(kSource / "kernels")) {
    for (const std::string& include : Includes(file)) {
      EXPECT_FALSE(kLevels.contains(include.substr(0, include.find('/'))))
          << file << " includes " << include;
    }
  }
}

TEST(Structure, TheEnvironmentIsReadInOnePlace) {
  EXPECT_THAT(FilesWith(kSource / "runtime", "getenv("), testing::IsEmpty());
  EXPECT_THAT(FilesWith(kSource / "runtime", "environ;"), testing::ElementsAre("runtime/start.cc"));
  EXPECT_THAT(FilesWith(kSource / "kernels", "getenv("), testing::IsEmpty());
}

TEST(Structure, EachLibraryHasOneIncluder) {
  EXPECT_THAT(FilesIncluding(kSource / "runtime", "httplib"),
              testing::ElementsAre("runtime/http/acceptor.cc"));
  EXPECT_THAT(
      FilesIncluding(kSource / "runtime", "prometheus/"),
      testing::UnorderedElementsAre("runtime/serve/metric_page.cc", "runtime/serve/metric_page.h"));
  EXPECT_THAT(
      FilesIncluding(kSource / "runtime", "serve/metric_page.h"),
      testing::UnorderedElementsAre("runtime/serve/metric_page.cc", "runtime/serve/metrics.cc"));
}

TEST(Structure, StdRegexIsNotUsed) {
  EXPECT_THAT(FilesIncluding(kSource / "runtime", "regex"), testing::IsEmpty());
}

}  // namespace
}  // namespace ashlar
