#include "probe/profiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/mapped_file.h"
#include "support/spec_fake_root.h"

namespace ashlar {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;

TEST(Profiles, NameTheCommonMachines) {
  EXPECT_THAT(PlatformProfiles(),
              ElementsAre("h100", "h200", "b200", "rtx-4090", "rtx-5090", "gb10", "mi210", "mi300x",
                          "mi325x", "mi355x", "rx-7900", "strix-halo", "xpu", "cpu-avx2",
                          "cpu-avx512", "cpu-amx"));
}

TEST(Profiles, AreListedInTheDocs) {
  const std::string docs = ReadTextFile(ASHLAR_SOURCE_DIR "/docs/operations.md", 1 << 20).value();
  for (const std::string& name : PlatformProfiles())
    EXPECT_THAT(docs, HasSubstr("`" + name + "`")) << name;
}

TEST(Profiles, AnswerToTheirAliases) {
  for (auto [alias, name] : {std::pair{"rtx4090", "rtx-4090"},
                             {"5090", "rtx-5090"},
                             {"dgx-spark", "gb10"},
                             {"gfx1100", "rx-7900"},
                             {"gfx1151", "strix-halo"},
                             {"max-1550", "xpu"}}) {
    ASSERT_TRUE(FindProfile(alias)) << alias;
    EXPECT_EQ(*FindProfile(alias), *FindProfile(name)) << alias;
  }
  EXPECT_FALSE(FindProfile(""));
}

TEST(Profiles, HaveTheKnownRowsOfTheirPlatforms) {
  for (const std::string& name : PlatformProfiles()) {
    Platform platform = *FindProfile(name);
    EXPECT_EQ(platform.name, name);
    EXPECT_EQ(platform.probes.size(), name == "xpu" ? 5u : 4u);
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
      EXPECT_NE(device.product, "");
    }
  }
}

TEST(Profiles, CapabilitiesCarryTheirUnit) {
  const std::pair<const char*, Capability> wanted[] = {
      {"h100", {CapabilityUnit::kCuda, 90, {"9.0"}}},
      {"h200", {CapabilityUnit::kCuda, 90, {"9.0"}}},
      {"b200", {CapabilityUnit::kCuda, 100, {"10.0"}}},
      {"rtx-4090", {CapabilityUnit::kCuda, 89, {"8.9"}}},
      {"rtx-5090", {CapabilityUnit::kCuda, 120, {"12.0"}}},
      {"gb10", {CapabilityUnit::kCuda, 121, {"12.1"}}},
      {"mi210", {CapabilityUnit::kGfx, 0x90a, {"gfx90a"}}},
      {"mi300x", {CapabilityUnit::kGfx, 0x942, {"gfx942"}}},
      {"mi325x", {CapabilityUnit::kGfx, 0x942, {"gfx942"}}},
      {"mi355x", {CapabilityUnit::kGfx, 0x950, {"gfx950"}}},
      {"rx-7900", {CapabilityUnit::kGfx, 0x1100, {"gfx1100"}}},
      {"strix-halo", {CapabilityUnit::kGfx, 0x1151, {"gfx1151"}}},
      {"xpu", {CapabilityUnit::kAny, 0, {"xe-hpc"}}},
      {"cpu-avx2", {CapabilityUnit::kCpu, kAvx2, {"avx2"}}},
  };
  for (const auto& [name, capability] : wanted)
    EXPECT_EQ(FindProfile(name)->devices[0].capability, capability) << name;
}

// No row of ours runs there: the profile is for what other engines would do.
TEST(Profiles, TheXpuHasNoRowOfOurs) {
  const Platform platform = *FindProfile("xpu");
  for (const AttentionRow& row : platform.rows)
    EXPECT_TRUE(row.platform == "cpu" || row.platform == "reference") << row.name;
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
              HasSubstr("h20: no profile of that name: h100, h200, b200, rtx-4090, rtx-5090, gb10, "
                        "mi210, mi300x, mi325x, mi355x, rx-7900, strix-halo, xpu, cpu-avx2, "
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
