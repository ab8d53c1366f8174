#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "probe/platform.h"
#include "probe/stub_library.h"
#include "support/probe_machines.h"

namespace ashlar {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> ProbedPlatforms(const Platform& platform) {
  std::vector<std::string> names;
  for (const PlatformProbe& probe : platform.probes) names.push_back(probe.platform);
  return names;
}

const PlatformProbe& ProbeOf(const Platform& platform, std::string_view name) {
  for (const PlatformProbe& probe : platform.probes) {
    if (probe.platform == name) return probe;
  }
  ADD_FAILURE() << name;
  return platform.probes.front();
}

TEST(ProbePlatform, ListsEveryPlatformWithoutAnyPlugin) {
  FakeRoot root;
  root.Write("/proc/sys/kernel/hostname", "node-7\n");
  root.MakeDirectory("/plugins");
  Platform platform =
      ProbePlatform({.plugin_directory = root.path() + "/plugins", .root = root.path()});
  EXPECT_EQ(platform.name, "node-7");
  EXPECT_THAT(ProbedPlatforms(platform), ElementsAre("cuda", "hip", "cpu", "reference"));
  EXPECT_EQ(ProbeOf(platform, "cuda").outcome, ProbeOutcome::kAbsent);
  EXPECT_EQ(ProbeOf(platform, "hip").outcome, ProbeOutcome::kAbsent);
  EXPECT_EQ(ProbeOf(platform, "cpu").outcome, ProbeOutcome::kNoDriver);
  EXPECT_THAT(ProbeOf(platform, "cpu").detail, HasSubstr("no plugin libashlar_cpu.so in "));
  EXPECT_THAT(ProbeOf(platform, "cpu").next, HasSubstr("install libashlar_cpu.so"));
  EXPECT_TRUE(platform.rows.empty());
  ASSERT_EQ(platform.devices.size(), 1u);
  EXPECT_EQ(platform.devices[0].platform, "cpu");
}

TEST(ProbePlatform, APluginThatDoesNotLoadIsBroken) {
  FakeRoot root;
  root.Write("/plugins/libashlar_cpu.so", "no library");
  Platform platform =
      ProbePlatform({.plugin_directory = root.path() + "/plugins", .root = root.path()});
  const PlatformProbe& cpu = ProbeOf(platform, "cpu");
  EXPECT_EQ(cpu.outcome, ProbeOutcome::kBroken);
  EXPECT_THAT(cpu.detail, HasSubstr("libashlar_cpu.so"));
  EXPECT_NE(cpu.next, "");
}

TEST(ProbePlatform, HardwareWithoutItsLibrarySaysBoth) {
  FakeRoot root;
  root.MakeDirectory("/plugins");
  root.Write("/dev/dxg", "");
  Platform platform = ProbePlatform({.plugin_directory = root.path() + "/plugins",
                                     .root = root.path(),
                                     .libraries = {"/no/such/libcuda.so.1", ""}});
  const PlatformProbe& cuda = ProbeOf(platform, "cuda");
  EXPECT_EQ(cuda.outcome, ProbeOutcome::kNoAccess);
  EXPECT_THAT(cuda.detail, HasSubstr("/dev/dxg of WSL; /no/such/libcuda.so.1: cannot open"));
}

TEST(ProbePlatform, DevicesWithoutTheirPluginAreListedAllTheSame) {
  FakeRoot root;
  root.MakeDirectory("/plugins");
  WriteAmd(root);
  stub_hip& runtime = StubState<stub_hip>("hip_stub", STUB_HIP_STATE);
  runtime = {};
  runtime.count = 2;
  runtime.version = 60'400'000;
  std::strcpy(runtime.pci[0], "0000:05:00.0");
  std::strcpy(runtime.pci[1], "0000:06:00.0");
  Platform platform = ProbePlatform({.plugin_directory = root.path() + "/plugins",
                                     .root = root.path(),
                                     .libraries = {"", "", {StubPath("hip_stub")}}});
  const PlatformProbe& hip = ProbeOf(platform, "hip");
  EXPECT_EQ(hip.outcome, ProbeOutcome::kNoDriver);
  EXPECT_THAT(hip.detail, HasSubstr("2 x gfx942; the runtime (HIP 6.4) shows 2 devices; no plugin "
                                    "libashlar_hip.so in "));
  EXPECT_THAT(hip.next, HasSubstr("install libashlar_hip.so"));
  ASSERT_EQ(platform.devices.size(), 3u);
  EXPECT_EQ(platform.devices[0].platform, "hip");
  EXPECT_EQ(platform.devices[2].platform, "cpu");
}

TEST(ProbePlatform, EveryOutcomeButFoundAndAbsentSaysWhatToDo) {
  FakeRoot root;
  root.MakeDirectory("/plugins");
  root.Write("/sys/bus/pci/devices/0/vendor", "0x10de\n");
  root.Write("/sys/bus/pci/devices/0/class", "0x030000\n");
  root.Write("/sys/bus/pci/devices/1/vendor", "0x1002\n");
  root.Write("/sys/bus/pci/devices/1/class", "0x030000\n");
  Platform platform = ProbePlatform({.plugin_directory = root.path() + "/plugins",
                                     .root = root.path(),
                                     .libraries = {"/no/such/libcuda.so.1", ""}});
  for (const PlatformProbe& probe : platform.probes) {
    EXPECT_EQ(probe.outcome, ProbeOutcome::kNoDriver) << probe.platform;
    EXPECT_NE(probe.detail, "") << probe.platform;
    EXPECT_NE(probe.next, "") << probe.platform;
  }
}

TEST(ProbePlatform, TheResultCanBeCapturedAndReplayed) {
  Platform platform = ProbePlatform({});
  Result<Platform> replayed = PlatformFromJson(ToJson(platform), "p.json");
  ASSERT_TRUE(replayed.ok()) << Text(replayed.problems());
  EXPECT_EQ(*replayed, platform);
}

}  // namespace
}  // namespace ashlar
