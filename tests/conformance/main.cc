// Runs every op and attention row of every plugin against the reference on shapes and values that
// are new each time. --seed N repeats a run.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <charconv>
#include <random>
#include <string_view>

#include "conformance/fixture.h"

namespace ashlar::testing {
namespace {

uint64_t seed = 0;

bool ParseSeed(int argc, char** argv) {
  seed = std::random_device()();
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) != "--seed" || i + 1 == argc) return false;
    const std::string_view text = argv[++i];
    const auto [end, error] = std::from_chars(text.begin(), text.end(), seed);
    if (error != std::errc() || end != text.end()) return false;
  }
  return true;
}

}  // namespace

uint64_t RunSeed() { return seed; }

}  // namespace ashlar::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (!ashlar::testing::ParseSeed(argc, argv)) {
    fmt::print(stderr, "usage: {} [--seed N] [--gtest_...]\n", argv[0]);
    return 2;
  }
  fmt::print("--seed {}\n", ashlar::testing::RunSeed());
  const int result = RUN_ALL_TESTS();
  ashlar::testing::PrintTolerancesUsed();
  return result;
}
