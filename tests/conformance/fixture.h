// What every conformance test shares: the seed of this run, the plugins of this build, the devices
// that stand against each other, and the record of how much of each tolerance was used.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "support/tensor_guard.h"
#include "support/tensor_random.h"

namespace ashlar::testing {

// Of this run: --seed N, or drawn. Printed by main.
uint64_t RunSeed();

// Every plugin of the folders that main was given, reference included. Fails the program when one
// is refused.
const std::vector<const Plugin*>& Plugins();
// --plugins FOLDER, as often as it was given; else the build's lib/ashlar.
const std::vector<std::string>& PluginFolders();
const Device& Reference();

// How a device is opened; each test runs on all of them.
std::vector<DeviceOptions> Variants(const Plugin& plugin);

// One plugin, with a random stream of its own that depends on the run's seed and the test's name.
class PluginTest : public ::testing::TestWithParam<const Plugin*> {
 protected:
  PluginTest();
  void SetUp() override;  // skips, with the probe's reason, when the plugin has no device here
  const Plugin& plugin() const { return *GetParam(); }
  std::unique_ptr<Device> Open(const DeviceOptions& options = {}) const;

  Random random_;
};

// Fails with the worst value when |got - want| exceeds its tolerance anywhere or got is no number.
// `what` names the case, its first word the line in the table that is printed at the end.
void ExpectWithin(const std::string& plugin, const std::string& op, const std::string& what,
                  std::span<const float> got, std::span<const float> want,
                  std::span<const double> tolerance);

// The case's text, built only when something is wrong would be nicer; it is short.
#define ASHLAR_PLUGIN_SUITE(Suite)                                       \
  INSTANTIATE_TEST_SUITE_P(Every, Suite, ::testing::ValuesIn(Plugins()), \
                           [](const auto& info) { return info.param->name(); })

void PrintTolerancesUsed();

}  // namespace ashlar::testing
