#include "probe/accelerators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/spec_fake_root.h"

namespace ashlar {
namespace {

using testing::HasSubstr;

void AddPci(const FakeRoot& root, const std::string& address, const char* vendor,
            const char* type) {
  root.Write("/sys/bus/pci/devices/" + address + "/vendor", std::string(vendor) + "\n");
  root.Write("/sys/bus/pci/devices/" + address + "/class", std::string(type) + "\n");
}

// A working machine with two NVIDIA GPUs.
void WriteNvidia(const FakeRoot& root) {
  AddPci(root, "0000:01:00.0", "0x10de", "0x030200");
  AddPci(root, "0000:02:00.0", "0x10de", "0x030200");
  root.Write("/proc/driver/nvidia/version",
             "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27\n");
  root.Write("/proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: x\n");
  root.Write("/proc/driver/nvidia/gpus/0000:02:00.0/information", "Model: x\n");
  for (const char* name : {"nvidiactl", "nvidia-uvm", "nvidia0", "nvidia1", "nvidia-modeset"})
    root.Write(std::string("/dev/") + name, "");
}

void AddKfdNode(const FakeRoot& root, int node, std::string_view properties) {
  root.Write("/sys/class/kfd/kfd/topology/nodes/" + std::to_string(node) + "/properties",
             properties);
}

// A working machine with a processor node and two MI300X.
void WriteAmd(const FakeRoot& root) {
  AddPci(root, "0000:05:00.0", "0x1002", "0x120000");
  AddPci(root, "0000:06:00.0", "0x1002", "0x120000");
  AddKfdNode(root, 0, "cpu_cores_count 96\nsimd_count 0\ngfx_target_version 0\n");
  AddKfdNode(root, 1, "simd_count 1216\ngfx_target_version 90402\ndrm_render_minor 128\n");
  AddKfdNode(root, 2, "simd_count 1216\ngfx_target_version 90402\ndrm_render_minor 129\n");
  root.Write("/dev/kfd", "");
  root.Write("/dev/dri/renderD128", "");
  root.Write("/dev/dri/renderD129", "");
}

PlatformProbe Nvidia(const FakeRoot& root) { return ProbeNvidiaFiles(RootFiles(root.path())); }
PlatformProbe Amd(const FakeRoot& root) { return ProbeAmdFiles(RootFiles(root.path())); }

TEST(NvidiaFiles, AbsentWithoutEvidence) {
  FakeRoot root;
  AddPci(root, "0000:00:02.0", "0x8086", "0x030000");
  AddPci(root, "0000:00:03.0", "0x10de", "0x020000");  // a network card of that vendor
  PlatformProbe probe = Nvidia(root);
  EXPECT_EQ(probe.platform, "cuda");
  EXPECT_EQ(probe.outcome, ProbeOutcome::kAbsent);
  EXPECT_EQ(probe.detail, "no NVIDIA device on the PCI bus, no /dev/nvidia*");
  EXPECT_EQ(probe.next, "");
}

TEST(NvidiaFiles, FoundNamesTheDriver) {
  FakeRoot root;
  WriteNvidia(root);
  PlatformProbe probe = Nvidia(root);
  EXPECT_EQ(probe.outcome, ProbeOutcome::kFound) << probe.detail;
  EXPECT_EQ(probe.detail, "driver 580.65.06, 4 device files");
}

TEST(NvidiaFiles, NoDriverWhenHardwareHasNone) {
  FakeRoot root;
  WriteNvidia(root);
  root.Remove("/proc/driver");
  root.Remove("/dev");
  PlatformProbe probe = Nvidia(root);
  EXPECT_EQ(probe.outcome, ProbeOutcome::kNoDriver);
  EXPECT_THAT(probe.detail, HasSubstr("2 NVIDIA devices on the PCI bus"));
  EXPECT_THAT(probe.next, HasSubstr("install the NVIDIA driver"));
}

TEST(NvidiaFiles, NoAccessWhenFilesAreNotInTheContainer) {
  FakeRoot root;
  WriteNvidia(root);
  root.Remove("/dev");
  PlatformProbe probe = Nvidia(root);
  EXPECT_EQ(probe.outcome, ProbeOutcome::kNoAccess);
  EXPECT_EQ(probe.detail,
            "driver 580.65.06 knows 2 GPUs, but /dev/nvidiactl: missing, /dev/nvidia-uvm: missing, "
            "/dev/nvidia0: missing");
  EXPECT_THAT(probe.next, HasSubstr("nvidia.com/gpu"));
}

TEST(NvidiaFiles, NoAccessWhenAFileIsNotPermitted) {
  FakeRoot root;
  WriteNvidia(root);
  root.Forbid("/dev/nvidiactl");
  for (const char* name : {"nvidia-uvm", "nvidia0", "nvidia1"})
    std::filesystem::permissions(root.path() + "/dev/" + name, std::filesystem::perms(0666));
  OrdinaryUser user;
  PlatformProbe probe = Nvidia(root);
  EXPECT_EQ(probe.outcome, ProbeOutcome::kNoAccess);
  EXPECT_THAT(probe.detail, HasSubstr("/dev/nvidiactl: Permission denied"));
}

TEST(NvidiaFiles, BrokenWhenTheDriverKnowsNoGpu) {
  FakeRoot root;
  WriteNvidia(root);
  root.Remove("/proc/driver/nvidia/gpus");
  PlatformProbe probe = Nvidia(root);
  EXPECT_EQ(probe.outcome, ProbeOutcome::kBroken);
  EXPECT_EQ(probe.detail, "driver 580.65.06 is loaded and knows no GPU");
  EXPECT_THAT(probe.next, HasSubstr("Xid"));
}

TEST(NvidiaFiles, BrokenWhenAFileFailsToOpenOtherwise) {
  FakeRoot root;
  WriteNvidia(root);
  root.Remove("/dev/nvidia1");
  root.MakeLoop("/dev/nvidia1");
  EXPECT_EQ(Nvidia(root).outcome, ProbeOutcome::kBroken);
}

TEST(NvidiaFiles, WslCountsAsEvidence) {
  FakeRoot root;
  root.Write("/dev/dxg", "");
  EXPECT_EQ(Nvidia(root).outcome, ProbeOutcome::kFound);
}

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
  PlatformProbe probe = Amd(root);
  EXPECT_EQ(probe.outcome, ProbeOutcome::kFound) << probe.detail;
  EXPECT_EQ(probe.detail, "2 x gfx942, 1 x gfx90a");
}

TEST(AmdFiles, OneUsableRenderNodeIsEnough) {
  FakeRoot root;
  WriteAmd(root);
  root.Remove("/dev/dri/renderD128");
  EXPECT_EQ(Amd(root).outcome, ProbeOutcome::kFound);
}

TEST(AmdFiles, NoDriverWithoutTopology) {
  FakeRoot root;
  WriteAmd(root);
  root.Remove("/sys/class/kfd");
  PlatformProbe probe = Amd(root);
  EXPECT_EQ(probe.outcome, ProbeOutcome::kNoDriver);
  EXPECT_THAT(probe.next, HasSubstr("amdgpu"));
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
  for (std::string_view text :
       {"simd_count", "simd_count -1\n", "simd_count 99999999999999999999\n",
        "simd_count 4\ngfx_target_version 18446744073709551615\ndrm_render_minor -5\n",
        "simd_count 4\ngfx_target_version abc\n", "\xff\xfe\n\n", "simd_count 4 4\n"}) {
    FakeRoot root;
    AddPci(root, "0000:05:00.0", "0x1002", "0x030000");
    AddKfdNode(root, 1, text);
    EXPECT_NE(Amd(root).outcome, ProbeOutcome::kFound) << text;
  }
}

}  // namespace
}  // namespace ashlar
