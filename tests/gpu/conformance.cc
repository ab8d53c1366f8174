// Every op and attention row of one plugin against the reference plugin, over the C table alone: it
// builds where there is nothing but a compiler, so a GPU host can run it.
//   conformance REFERENCE.so PLUGIN.so [--seed N] [--rounds N] [--only WORD] [--size large]
//               [--layers none]
// Shapes and values are new each time; --seed repeats a run. With --size large some products are
// as large as a model's, for a real device. A plugin with whole layers must take some, unless its
// device is said to have none. Exits 1 when anything differs by more than its tolerance, 3 when the
// plugin has no device.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "gpu/cases.h"

namespace {

using namespace ashlar::gpu_test;

struct Options {
  const char *reference = nullptr, *plugin = nullptr;
  uint64_t seed = std::random_device()();
  int rounds = 4;
  std::string only;
  bool large = false;
  bool layers = true;
};

bool Parse(int argc, char** argv, Options* options) {
  if (argc < 3) return false;
  options->reference = argv[1];
  options->plugin = argv[2];
  for (int i = 3; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--seed") == 0) {
      options->seed = std::strtoull(argv[i + 1], nullptr, 10);
    } else if (std::strcmp(argv[i], "--rounds") == 0) {
      options->rounds = std::atoi(argv[i + 1]);
    } else if (std::strcmp(argv[i], "--only") == 0) {
      options->only = argv[i + 1];
    } else if (std::strcmp(argv[i], "--size") == 0) {
      options->large = std::strcmp(argv[i + 1], "large") == 0;
      if (!options->large && std::strcmp(argv[i + 1], "small") != 0) return false;
    } else if (std::strcmp(argv[i], "--layers") == 0) {
      options->layers = std::strcmp(argv[i + 1], "none") != 0;
      if (options->layers && std::strcmp(argv[i + 1], "some") != 0) return false;
    } else {
      return false;
    }
  }
  return argc % 2 == 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!Parse(argc, argv, &options)) {
    std::fprintf(stderr,
                 "usage: %s REFERENCE.so PLUGIN.so [--seed N] [--rounds N] [--only WORD] "
                 "[--size large] [--layers none]\n",
                 argv[0]);
    return 2;
  }
  std::printf("--seed %llu\n", static_cast<unsigned long long>(options.seed));
  std::fflush(stdout);  // known even when the run is ended from outside
  Side reference(options.reference, false), plugin(options.plugin, false);
  if (!reference.Ready() || !plugin.Ready()) return 3;
  Side invariant(options.plugin, true);
  Report report;
  for (const Case& test : kCases) {
    if (!options.only.empty() && options.only != test.name) continue;
    // Each op's stream of numbers is its own: --only sees what the whole run saw.
    Random random(options.seed ^ std::hash<std::string>()(test.name));
    const int rounds = test.slow && !options.large ? (options.rounds + 2) / 3 : options.rounds;
    for (int round = 0; round < rounds; ++round) {
      test.run({reference, plugin, invariant, random, report, test.name, options.large});
    }
  }
  const bool ran = options.only.empty() || options.only == "layers";
  if (ran && options.layers && plugin.table().layers != nullptr) {
    report.Expect(report.uses.contains("layers"), "layers taken", "none was");
  }
  report.Print();
  return report.failures == 0 ? 0 : 1;
}
