// Runs every op and attention row of every plugin against the reference on shapes and values that
// are new each time. --seed N repeats a run; --plugins FOLDER, also more than once, names other
// plugins than the build's own.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <charconv>
#include <random>
#include <string_view>

#include "conformance/fixture.h"

namespace ashlar::testing {
namespace {

uint64_t seed = 0;
std::vector<std::string> folders;

// Leaves --gtest_ arguments alone: the list of plugins must be known before GoogleTest starts.
bool ParseArguments(int argc, char** argv) {
  seed = std::random_device()();
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name.starts_with("--gtest_")) continue;
    if ((name != "--seed" && name != "--plugins") || i + 1 == argc) return false;
    const std::string_view text = argv[++i];
    if (name == "--plugins") {
      folders.emplace_back(text);
      continue;
    }
    const auto [end, error] = std::from_chars(text.begin(), text.end(), seed);
    if (error != std::errc() || end != text.end()) return false;
  }
  if (folders.empty()) folders.push_back(ASHLAR_BUILD_DIR "/lib/ashlar");
  return true;
}

}  // namespace

uint64_t RunSeed() { return seed; }
const std::vector<std::string>& PluginFolders() { return folders; }

}  // namespace ashlar::testing

int main(int argc, char** argv) {
  if (!ashlar::testing::ParseArguments(argc, argv)) {
    fmt::print(stderr, "usage: {} [--seed N] [--plugins FOLDER]... [--gtest_...]\n", argv[0]);
    return 2;
  }
  ::testing::InitGoogleTest(&argc, argv);
  fmt::print("--seed {}\n", ashlar::testing::RunSeed());
  const int result = RUN_ALL_TESTS();
  ashlar::testing::PrintTolerancesUsed();
  return result;
}
