#include "probe/profiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/spec_fake_root.h"

namespace ashlar {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsSupersetOf;

TEST(Profiles, NameTheCommonMachines) {
  EXPECT_THAT(PlatformProfiles(), IsSupersetOf({"h100", "h200", "mi300x", "mi210", "cpu-avx2",
                                                "cpu-avx512", "cpu-amx"}));
}

TEST(Profiles, HaveTheKnownRowsOfTheirPlatforms) {
  for (const std::string& name : PlatformProfiles()) {
    Platform platform = *FindProfile(name);
    EXPECT_EQ(platform.name, name);
    EXPECT_EQ(platform.probes.size(), 4u);
    std::vector<std::string> found;
    for (const PlatformProbe& probe : platform.probes) {
      if (probe.outcome == ProbeOutcome::kFound) found.push_back(probe.platform);
    }
    EXPECT_THAT(found, IsSupersetOf({"cpu", "reference"}));
    EXPECT_EQ(found.size(), platform.devices.size());
    size_t rows = 0;
    for (const AttentionRow& row : KnownRows()) {
      if (std::find(found.begin(), found.end(), row.platform) == found.end()) continue;
      ++rows;
      EXPECT_THAT(platform.rows, Contains(row));
    }
    EXPECT_EQ(platform.rows.size(), rows);
    for (const DeviceInfo& device : platform.devices) {
      EXPECT_THAT(found, Contains(device.platform));
      EXPECT_GT(device.free_bytes, 0);
      EXPECT_LE(device.free_bytes, device.memory_bytes);
      EXPECT_FALSE(device.capability.names.empty());
    }
  }
}

TEST(Profiles, CapabilitiesCarryTheirUnit) {
  EXPECT_EQ(FindProfile("h200")->devices[0].capability,
            (Capability{CapabilityUnit::kCuda, 90, {"9.0"}}));
  EXPECT_EQ(FindProfile("mi300x")->devices[0].capability,
            (Capability{CapabilityUnit::kGfx, 0x942, {"gfx942"}}));
  EXPECT_EQ(FindProfile("cpu-avx2")->devices[0].capability,
            (Capability{CapabilityUnit::kCpu, kAvx2, {"avx2"}}));
}

TEST(ReadPlatform, TakesAProfileOrACapturedFile) {
  ASSERT_TRUE(ReadPlatform("h100").ok());
  FakeRoot root;
  root.Write("/p.json", DumpJson(ToJson(*FindProfile("mi210"))));
  Result<Platform> platform = ReadPlatform(root.path() + "/p.json");
  ASSERT_TRUE(platform.ok()) << Text(platform.problems());
  EXPECT_EQ(*platform, *FindProfile("mi210"));
}

TEST(ReadPlatform, NamesTheProfilesOnATypo) {
  Result<Platform> platform = ReadPlatform("h20");
  ASSERT_FALSE(platform.ok());
  EXPECT_THAT(Text(platform.problems()),
              HasSubstr("h20: no profile of that name: h100, h200, mi300x, mi210, cpu-avx2, "
                        "cpu-avx512 or cpu-amx; did you mean h200?"));
}

TEST(ReadPlatform, RefusesBrokenFiles) {
  FakeRoot root;
  for (const char* text : {"", "{", "[]", "3", "{\"name\": \"x\"}", "\xff", "{} {}"}) {
    root.Write("/p.json", text);
    Result<Platform> platform = ReadPlatform(root.path() + "/p.json");
    ASSERT_FALSE(platform.ok()) << text;
    EXPECT_THAT(Text(platform.problems()), HasSubstr("/p.json")) << text;
  }
}

}  // namespace
}  // namespace ashlar
