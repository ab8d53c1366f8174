#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "probe/accelerators.h"
#include "support/probe_machines.h"

namespace ashlar {
namespace {

using testing::HasSubstr;

PlatformProbe Nvidia(const FakeRoot& root) { return ProbeNvidiaFiles(RootFiles(root.path())); }

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

}  // namespace
}  // namespace ashlar
