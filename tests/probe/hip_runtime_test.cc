#include "probe/hip_runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "probe/stub_library.h"
#include "support/probe_machines.h"

namespace ashlar {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

// Two MI300X whose files and runtime are well.
class HipRuntime : public testing::Test {
 protected:
  HipRuntime() : hip_(StubState<stub_hip>("hip_stub", STUB_HIP_STATE)) {
    hip_ = {};
    hip_.count = 2;
    hip_.version = 60'443'484;
    std::strcpy(hip_.pci[0], "0000:05:00.0");
    std::strcpy(hip_.pci[1], "0000:06:00.0");
    WriteAmd(root_);
  }

  Accelerators Probe(std::vector<std::string> libraries = {StubPath("hip_stub")},
                     int seconds = 60) const {
    return ProbeAmd(RootFiles(root_.path()), {"", "", std::move(libraries)}, seconds);
  }

  FakeRoot root_;
  stub_hip& hip_;
};

TEST_F(HipRuntime, FoundJoinsTheRuntimeWithTheTopology) {
  Accelerators found = Probe({"/no/such/libamdhip64.so.7", StubPath("hip_stub")});
  EXPECT_EQ(found.probe.outcome, ProbeOutcome::kFound);
  EXPECT_EQ(found.probe.detail, "2 x gfx942; the runtime (HIP 6.4) shows 2 devices");
  std::vector<DeviceInfo> wanted = ProbeAmdFiles(RootFiles(root_.path())).devices;
  for (DeviceInfo& device : wanted) device.driver = "6.12.12 (HIP 6.4)";
  EXPECT_EQ(found.devices, wanted);
}

// HIP_VISIBLE_DEVICES=1 hides the first and renumbers the second.
TEST_F(HipRuntime, NumbersAreThoseOfTheRuntime) {
  hip_.count = 1;
  std::strcpy(hip_.pci[0], "0000:06:00.0");
  Accelerators found = Probe();
  ASSERT_EQ(found.devices.size(), 1u);
  EXPECT_EQ(found.devices[0].id, "0000:06:00.0");
  EXPECT_EQ(found.devices[0].index, 0);
  EXPECT_EQ(found.devices[0].memory_space, "hip:0");
}

TEST_F(HipRuntime, NoDriverWithoutARuntime) {
  Accelerators probe = Probe({"/no/such/libamdhip64.so.7", "/no/such/libamdhip64.so.6"});
  EXPECT_EQ(probe.probe.outcome, ProbeOutcome::kNoDriver);
  EXPECT_EQ(probe.probe.detail,
            "2 x gfx942; no HIP runtime: /no/such/libamdhip64.so.7, /no/such/libamdhip64.so.6");
  EXPECT_EQ(probe.probe.next, "install the HIP runtime of ROCm in the image");
  EXPECT_EQ(probe.devices, ProbeAmdFiles(RootFiles(root_.path())).devices);
}

TEST_F(HipRuntime, NoAccessWhenDevicesAreHiddenFromThisProcess) {
  hip_.count = 0;
  const Accelerators probe = Probe();
  EXPECT_EQ(probe.probe.outcome, ProbeOutcome::kNoAccess);
  EXPECT_THAT(probe.probe.detail, EndsWith("2 GPUs, none of them visible to this process"));
  EXPECT_THAT(probe.probe.next, HasSubstr("HIP_VISIBLE_DEVICES"));
  EXPECT_THAT(probe.devices, IsEmpty());
  hip_.init_code = 100;
  hip_.count = 2;
  EXPECT_EQ(Probe().probe, probe.probe);
}

TEST_F(HipRuntime, BrokenWhenItFails) {
  hip_.init_code = 101;
  PlatformProbe probe = Probe().probe;
  EXPECT_EQ(probe.outcome, ProbeOutcome::kBroken);
  EXPECT_THAT(probe.detail, EndsWith("hipInit: hipErrorInvalidDevice (101)"));
  EXPECT_THAT(probe.next, HasSubstr("kernel log"));
  hip_.init_code = 0;
  hip_.count_code = 999;
  EXPECT_THAT(Probe().probe.detail, EndsWith("error 999"));
  hip_.count_code = 0;
  for (int count : {-1, 4097}) {
    hip_.count = count;
    EXPECT_THAT(Probe().probe.detail,
                EndsWith("the runtime counts " + std::to_string(count) + " devices"));
  }
  PlatformProbe wrong = Probe({StubPath("nvml_stub")}).probe;
  EXPECT_EQ(wrong.outcome, ProbeOutcome::kBroken);
  EXPECT_THAT(wrong.detail, EndsWith("nvml_stub.so has no hipInit"));
}

TEST_F(HipRuntime, ADeviceThatTheTopologyLacksIsNotUsed) {
  std::memset(hip_.pci[1], '7', sizeof hip_.pci[1]);  // no end
  Accelerators found = Probe();
  EXPECT_EQ(found.probe.outcome, ProbeOutcome::kFound);
  EXPECT_THAT(found.probe.detail, EndsWith("not among the usable ones of KFD: HIP device 1 (" +
                                           std::string(64, '7') + ")"));
  EXPECT_EQ(found.devices.size(), 1u);
  hip_.pci_fails = 1;
  EXPECT_EQ(Probe().probe.outcome, ProbeOutcome::kBroken);
}

TEST_F(HipRuntime, OnePartitionForEachOfTheRuntime) {
  for (int node : {1, 2})
    AddKfdNode(root_, node,
               "simd_count 152\nsimd_per_cu 4\ngfx_target_version 90402\ndevice_id 29857\n"
               "unique_id 5\nnum_xcc 1\nlocation_id " +
                   std::to_string(0x500 + node - 1) + "\ndrm_render_minor " +
                   std::to_string(127 + node) + "\n");
  std::strcpy(hip_.pci[1], "0000:05:00.1");
  Accelerators found = Probe();
  ASSERT_EQ(found.devices.size(), 2u) << found.probe.detail;
  EXPECT_EQ(found.devices[0].partition, "CPX partition 0");
  EXPECT_EQ(found.devices[1].partition, "CPX partition 1");
}

TEST_F(HipRuntime, ARuntimeThatHangsIsBroken) {
  hip_.init_hangs = 1;
  PlatformProbe probe = Probe({StubPath("hip_stub")}, 1).probe;
  EXPECT_EQ(probe.outcome, ProbeOutcome::kBroken);
  EXPECT_THAT(probe.detail, EndsWith("the driver did not answer within 1000 ms"));
}

}  // namespace
}  // namespace ashlar
