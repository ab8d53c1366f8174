#include "conformance/fixture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace ashlar::testing {
namespace {

// op and plugin -> largest error as a share of its tolerance, and how many values were compared.
struct Use {
  double share = 0;
  int64_t values = 0;
};
std::map<std::pair<std::string, std::string>, Use>& Uses() {
  static std::map<std::pair<std::string, std::string>, Use> uses;
  return uses;
}

uint64_t HashName(const std::string& name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

const std::vector<const Plugin*>& Plugins() {
  static const std::vector<const Plugin*> plugins = [] {
    std::vector<const Plugin*> all;
    for (const std::string& folder : PluginFolders()) {
      PluginScan scan = LoadPlugins(folder);
      if (!scan.refused.empty()) Fail("every plugin of " + folder + " loads", Text(scan.refused));
      all.insert(all.end(), scan.plugins.begin(), scan.plugins.end());
    }
    return all;
  }();
  return plugins;
}

const Device& Reference() {
  static const std::unique_ptr<Device> device = [] {
    for (const Plugin* plugin : Plugins()) {
      if (plugin->name() == "reference") return Device::Open(*plugin, {}).value();
    }
    Fail("the reference plugin is among the plugins", PluginFolders().front());
  }();
  return *device;
}

std::vector<DeviceOptions> Variants(const Plugin& plugin) {
  std::vector<DeviceOptions> variants;
  variants.push_back({0, 1, false});
  if (plugin.memory() == "host") variants.push_back({0, 3, false});  // others have no threads
  if (plugin.table().invariant_ops != 0) variants.push_back({0, 2, true});
  return variants;
}

PluginTest::PluginTest()
    : random_(RunSeed() ^
              HashName(::testing::UnitTest::GetInstance()->current_test_info()->name())) {}

void PluginTest::SetUp() {
  const ashlar_probe probe = plugin().Probe();
  if (probe.outcome != 0) GTEST_SKIP() << plugin().name() << " has no device: " << probe.detail;
}

std::unique_ptr<Device> PluginTest::Open(const DeviceOptions& options) const {
  return Device::Open(plugin(), options).value();
}

void ExpectWithin(const std::string& plugin, const std::string& op, const std::string& what,
                  std::span<const float> got, std::span<const float> want,
                  std::span<const double> tolerance) {
  ASSERT_EQ(got.size(), want.size()) << what;
  ASSERT_EQ(got.size(), tolerance.size()) << what;
  size_t worst = 0, wrong = 0;
  double worst_share = -1;
  for (size_t i = 0; i < got.size(); ++i) {
    const double error = std::fabs(static_cast<double>(got[i]) - static_cast<double>(want[i]));
    double share = error == 0 ? 0 : error / tolerance[i];
    if (std::isnan(share)) share = INFINITY;
    if (share > 1) ++wrong;
    if (share > worst_share) worst_share = share, worst = i;
  }
  Use& use = Uses()[{op, plugin}];
  use.share = std::max(use.share, worst_share);
  use.values += static_cast<int64_t>(got.size());
  EXPECT_EQ(wrong, 0u) << fmt::format(
      "{} {} {}: {} of {} values; worst at {}: {} instead of {}, tolerance {} (--seed {})", plugin,
      op, what, wrong, got.size(), worst, got[worst], want[worst], tolerance[worst], RunSeed());
}

void PrintTolerancesUsed() {
  fmt::print("{:<28}{:<12}{:>14}{:>28}\n", "op", "plugin", "values", "worst error / tolerance");
  for (const auto& [key, use] : Uses()) {
    fmt::print("{:<28}{:<12}{:>14}{:>28.3g}\n", key.first, key.second, use.values, use.share);
  }
}

}  // namespace ashlar::testing
