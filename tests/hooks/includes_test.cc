// What operator-hooks may lean on: values and planning, never the engine or a device.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <set>

namespace ashlar::hooks {
namespace {

const std::set<std::string> kAllowed = {"base",  "spec", "checkpoint", "model",
                                        "probe", "plan", "http",       "operator-hooks"};
const std::set<std::string> kForbidden = {"text", "device", "weights", "kv", "engine", "serve"};

TEST(Includes, OnlyOfWhatTheHooksMayKnow) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(ASHLAR_SOURCE_DIR) + "/operator-hooks")) {
    std::string extension = entry.path().extension();
    if (extension != ".h" && extension != ".cc") continue;
    ++files;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      EXPECT_EQ(line.find("getenv("), line.npos) << entry.path();
      if (!line.starts_with("#include ")) continue;
      EXPECT_NE(line, "#include <regex>") << entry.path();
      std::string folder = line.substr(10, line.find('/') == line.npos ? 0 : line.find('/') - 10);
      EXPECT_FALSE(kForbidden.contains(folder)) << entry.path() << " " << line;
      if (line.starts_with("#include \"")) {
        EXPECT_TRUE(kAllowed.contains(folder)) << entry.path() << " " << line;
      }
      if (line.starts_with("#include <prometheus/")) {
        EXPECT_EQ(entry.path().filename(), "hook_metrics.cc");
      }
      if (line == "#include <simdjson.h>") {
        EXPECT_EQ(entry.path().filename(), "json_reader.h");
      }
    }
  }
  EXPECT_GT(files, 50);
}

}  // namespace
}  // namespace ashlar::hooks
