#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "probe/accelerators.h"
#include "support/probe_machines.h"

namespace ashlar {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

Accelerators Probe(const FakeRoot& root) { return ProbeAmdFiles(RootFiles(root.path())); }
PlatformProbe Amd(const FakeRoot& root) { return Probe(root).probe; }

TEST(AmdFiles, AbsentOnAServerWithAmdProcessorsAlone) {
  FakeRoot root;
  AddKfdNode(root, 0, "cpu_cores_count 96\nsimd_count 0\n");
  root.Write("/dev/kfd", "");
  PlatformProbe probe = Amd(root);
  EXPECT_EQ(probe.platform, "hip");
  EXPECT_EQ(probe.outcome, ProbeOutcome::kAbsent);
}

TEST(AmdFiles, FoundNamesArchitectures) {
  FakeRoot root;
  WriteAmd(root);
  AddKfdNode(root, 3, "simd_count 416\ngfx_target_version 90010\ndrm_render_minor 130\n");
  AddKfdMemory(root, 3, "68702699520");
  root.Write("/dev/dri/renderD130", "");
  PlatformProbe probe = Amd(root);
  EXPECT_EQ(probe.outcome, ProbeOutcome::kFound) << probe.detail;
  EXPECT_EQ(probe.detail, "2 x gfx942, 1 x gfx90a");
}

TEST(AmdFiles, DescribesEachDevice) {
  FakeRoot root;
  WriteAmd(root);
  root.Write(KfdNode(1) + "/mem_banks/0/used_memory", "1073741824\n");
  std::vector<DeviceInfo> devices = Probe(root).devices;
  ASSERT_EQ(devices.size(), 2u);
  DeviceInfo wanted;
  wanted.platform = "hip";
  wanted.index = 0;
  wanted.product = "AMD Instinct MI300X";
  wanted.capability = {CapabilityUnit::kGfx, 0x942, {"gfx942"}};
  wanted.id = "0000:05:00.0";
  wanted.driver = "6.12.12";
  wanted.link = "xgmi:15188982192727901047";
  wanted.compute_units = 304;
  wanted.memory_space = "hip:0";
  wanted.memory_bytes = int64_t{192} << 30;
  wanted.free_bytes = int64_t{191} << 30;
  EXPECT_EQ(devices[0], wanted);
  EXPECT_EQ(devices[1].index, 1);
  EXPECT_EQ(devices[1].memory_space, "hip:1");
  EXPECT_EQ(devices[1].free_bytes, int64_t{192} << 30);
}

// The runtime numbers the GPUs whose render nodes it can open.
TEST(AmdFiles, ListsTheGpusOfThisContainerOnly) {
  FakeRoot root;
  WriteAmd(root);
  root.Remove("/dev/dri/renderD128");
  Accelerators found = Probe(root);
  EXPECT_EQ(found.probe.outcome, ProbeOutcome::kFound);
  EXPECT_EQ(found.probe.detail, "1 x gfx942");
  ASSERT_EQ(found.devices.size(), 1u);
  EXPECT_EQ(found.devices[0].id, "0000:06:00.0");
  EXPECT_EQ(found.devices[0].index, 0);
}

TEST(AmdFiles, TheKernelStandsForADriverWithoutVersion) {
  FakeRoot root;
  WriteAmd(root);
  root.Remove("/sys/module/amdgpu/version");
  root.Write("/proc/sys/kernel/osrelease", "6.8.0-45\n");
  EXPECT_EQ(Probe(root).devices[0].driver, "Linux 6.8.0-45");
}

TEST(AmdFiles, AFaultyGpuIsLeftOutByName) {
  FakeRoot root;
  WriteAmd(root);
  root.Write("/sys/bus/pci/devices/0000:05:00.0/ras/umc_err_count", "ue: 1\nce: 7\n");
  Accelerators found = Probe(root);
  EXPECT_EQ(found.probe.outcome, ProbeOutcome::kFound);
  EXPECT_EQ(found.probe.detail,
            "2 x gfx942; not used: KFD node 1 (AMD Instinct MI300X, 0000:05:00.0): 1 uncorrectable "
            "memory errors");
  ASSERT_EQ(found.devices.size(), 1u);
  EXPECT_EQ(found.devices[0].index, 1);

  root.Write("/sys/bus/pci/devices/0000:06:00.0/ras/gpu_vram_bad_pages",
             "0x00000001 : 0x00001000 : R\n0x00000002 : 0x00001000 : P\n");
  found = Probe(root);
  EXPECT_EQ(found.probe.outcome, ProbeOutcome::kBroken);
  EXPECT_THAT(found.probe.detail, HasSubstr("0000:06:00.0): memory pages wait to be retired"));
  EXPECT_THAT(found.probe.next, HasSubstr("replace the GPU"));
  EXPECT_THAT(found.devices, IsEmpty());
}

TEST(AmdFiles, CorrectedErrorsAndRetiredPagesAreNoFault) {
  FakeRoot root;
  WriteAmd(root);
  root.Write("/sys/bus/pci/devices/0000:05:00.0/ras/umc_err_count", "ue: 0\nce: 7\n");
  root.Write("/sys/bus/pci/devices/0000:05:00.0/ras/gpu_vram_bad_pages",
             "0x00000001 : 0x00001000 : R\n");
  EXPECT_EQ(Probe(root).devices.size(), 2u);
}

TEST(AmdFiles, AGpuWithoutNameOrMemoryIsLeftOut) {
  FakeRoot root;
  WriteAmd(root);
  AddKfdNode(root, 1, "simd_count 4\ngfx_target_version abc\ndrm_render_minor 128\n");
  root.Remove(KfdNode(2) + "/mem_banks");
  Accelerators found = Probe(root);
  EXPECT_EQ(found.probe.outcome, ProbeOutcome::kBroken);
  EXPECT_THAT(found.probe.detail,
              HasSubstr("KFD node 1 (AMD GPU, 0000:00:00.0): neither gfx_target_version nor "
                        "device_id names its instruction set"));
  EXPECT_THAT(found.probe.detail, HasSubstr("0000:06:00.0): the size of its memory is not stated"));
}

TEST(AmdFiles, NoDriverWithoutTopology) {
  FakeRoot root;
  WriteAmd(root);
  root.Remove("/sys/class/kfd");
  PlatformProbe probe = Amd(root);
  EXPECT_EQ(probe.outcome, ProbeOutcome::kNoDriver);
  EXPECT_EQ(
      probe.detail,
      "2 AMD GPUs on the PCI bus, amdgpu is loaded, but no /sys/class/kfd/kfd/topology/nodes");
  EXPECT_THAT(probe.next, HasSubstr("CONFIG_HSA_AMD"));
  root.Remove("/sys/module/amdgpu");
  EXPECT_EQ(Amd(root).next, "load the amdgpu kernel module on the node");
}

TEST(AmdFiles, NoAccessWithoutDeviceFiles) {
  FakeRoot root;
  WriteAmd(root);
  root.Remove("/dev");
  PlatformProbe probe = Amd(root);
  EXPECT_EQ(probe.outcome, ProbeOutcome::kNoAccess);
  EXPECT_EQ(probe.detail, "2 x gfx942, but /dev/kfd: missing, /dev/dri/renderD129: missing");
  EXPECT_THAT(probe.next, HasSubstr("amd.com/gpu"));
}

TEST(AmdFiles, NoAccessWhenARenderNodeIsNotPermitted) {
  FakeRoot root;
  WriteAmd(root);
  root.Remove("/dev/dri/renderD129");
  root.Forbid("/dev/dri/renderD128");
  std::filesystem::permissions(root.path() + "/dev/kfd", std::filesystem::perms(0666));
  OrdinaryUser user;
  PlatformProbe probe = Amd(root);
  EXPECT_EQ(probe.outcome, ProbeOutcome::kNoAccess);
  EXPECT_EQ(probe.detail, "2 x gfx942, but /dev/dri/renderD129: missing");
  EXPECT_THAT(probe.next, HasSubstr("add the groups render and video"));
}

TEST(AmdFiles, BrokenWhenADeviceFileFailsToOpenOtherwise) {
  FakeRoot root;
  WriteAmd(root);
  root.Remove("/dev/kfd");
  root.MakeLoop("/dev/kfd");
  PlatformProbe probe = Amd(root);
  EXPECT_EQ(probe.outcome, ProbeOutcome::kBroken);
  EXPECT_THAT(probe.detail, HasSubstr("/dev/kfd: Too many levels of symbolic links"));
  EXPECT_THAT(probe.next, HasSubstr("kernel log"));
}

TEST(AmdFiles, NoAccessWhenTheDeviceCgroupHidesTheNodes) {
  FakeRoot root;
  WriteAmd(root);
  AddKfdNode(root, 1, "");
  AddKfdNode(root, 2, "");
  PlatformProbe probe = Amd(root);
  EXPECT_EQ(probe.outcome, ProbeOutcome::kNoAccess);
  EXPECT_EQ(probe.detail, "2 KFD nodes may not be read");
}

TEST(AmdFiles, BrokenWhenTheTopologyLacksTheGpu) {
  FakeRoot root;
  WriteAmd(root);
  root.Remove("/sys/class/kfd/kfd/topology/nodes/1");
  root.Remove("/sys/class/kfd/kfd/topology/nodes/2");
  PlatformProbe probe = Amd(root);
  EXPECT_EQ(probe.outcome, ProbeOutcome::kBroken);
  EXPECT_THAT(probe.detail, HasSubstr("the KFD topology has none"));
}

TEST(AmdFiles, SurviveHostileTopologies) {
  const std::string huge(3 << 20, 'x');
  for (std::string_view text :
       {"simd_count", "simd_count -1\n", "simd_count 99999999999999999999\n",
        "simd_count 4\ngfx_target_version 18446744073709551615\ndrm_render_minor -5\n",
        "simd_count 4\ngfx_target_version abc\n", "\xff\xfe\n\n", "simd_count 4 4\n",
        "simd_count 9223372036854775807\nsimd_per_cu 0\nlocation_id 9223372036854775807\n"
        "domain 9223372036854775807\nnum_xcc 9223372036854775807\ngfx_target_version 90402\n",
        huge.c_str()}) {
    FakeRoot root;
    AddPci(root, "0000:05:00.0", "0x1002", "0x030000");
    AddKfdNode(root, 1, text);
    root.Write("/dev/kfd", "");
    root.Write("/dev/dri/renderD0", "");
    EXPECT_NE(Amd(root).outcome, ProbeOutcome::kFound) << text.substr(0, 100);
  }
}

TEST(AmdFiles, SurviveHostileMemory) {
  for (std::string_view bytes :
       {"0", "-1", "9223372036854775807", "18446744073709551616", "many"}) {
    FakeRoot root;
    WriteAmd(root);
    AddKfdMemory(root, 1, bytes);
    root.Write(KfdNode(2) + "/mem_banks/0/used_memory", "9223372036854775807\n");
    Accelerators found = Probe(root);
    ASSERT_EQ(found.devices.size(), 1u) << bytes;
    EXPECT_EQ(found.devices[0].index, 1);
    EXPECT_EQ(found.devices[0].memory_bytes, int64_t{192} << 30);
    EXPECT_EQ(found.devices[0].free_bytes, found.devices[0].memory_bytes);
  }
}

TEST(AmdFiles, SurviveLoopsAndPipesInPlaceOfFiles) {
  FakeRoot root;
  WriteAmd(root);
  root.MakeLoop(KfdNode(3) + "/properties");
  root.MakeLoop(KfdNode(4));
  root.Write(KfdNode(5), "a file, not a folder");
  root.Remove(KfdNode(2) + "/mem_banks");
  root.MakeLoop(KfdNode(2) + "/mem_banks");
  Accelerators found = Probe(root);
  EXPECT_EQ(found.probe.outcome, ProbeOutcome::kFound);
  EXPECT_EQ(found.devices.size(), 1u);
}

TEST(AmdFiles, SurviveThousandsOfNodes) {
  FakeRoot root;
  WriteAmd(root);
  for (int node = 10; node < 4200; ++node)
    std::filesystem::create_directory_symlink("1", root.path() + KfdNode(node));
  Accelerators found = Probe(root);
  EXPECT_EQ(found.probe.outcome, ProbeOutcome::kFound);
  EXPECT_GT(found.devices.size(), 4000u);
  EXPECT_LE(found.devices.size(), 4096u);
}

}  // namespace
}  // namespace ashlar
