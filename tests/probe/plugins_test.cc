// The plugins of this build, as a probe finds them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "probe/platform.h"

namespace ashlar {
namespace {

using testing::Contains;

Platform Probe() {
  return ProbePlatform({.plugin_directory = ASHLAR_BUILD_DIR "/lib/ashlar", .root = ""});
}

TEST(ProbePlugins, HostPlatformsAreFound) {
  Platform platform = Probe();
  for (const char* name : {"cpu", "reference"}) {
    auto probe = std::find_if(platform.probes.begin(), platform.probes.end(),
                              [&](const PlatformProbe& p) { return p.platform == name; });
    ASSERT_NE(probe, platform.probes.end());
    EXPECT_EQ(probe->outcome, ProbeOutcome::kFound) << probe->detail;
    auto device = std::find_if(platform.devices.begin(), platform.devices.end(),
                               [&](const DeviceInfo& d) { return d.platform == name; });
    ASSERT_NE(device, platform.devices.end()) << name;
    EXPECT_EQ(device->memory_space, "host");
    EXPECT_GE(device->threads, 1);
  }
}

TEST(ProbePlugins, TheirRowsAreThoseCompiledIntoTheRuntime) {
  Platform platform = Probe();
  size_t known = 0;
  for (const AttentionRow& row : KnownRows()) {
    if (row.platform != "cpu" && row.platform != "reference") continue;
    ++known;
    EXPECT_THAT(platform.rows, Contains(row)) << row.name;
  }
  EXPECT_GT(known, 0u);
  EXPECT_GE(platform.rows.size(), known);
}

}  // namespace
}  // namespace ashlar
