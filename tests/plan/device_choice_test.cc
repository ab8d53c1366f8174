#include "plan/device_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/plan_builders.h"

namespace ashlar {
namespace {

using testing::BasicSpec;
using testing::CpuDevice;
using testing::CpuPlatform;
using testing::CudaDevice;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::HybridModel;
using testing::Placed;

Plan Made(const Spec& spec, const Platform& platform) {
  Result<Plan> plan = MakePlan(spec, platform, HybridModel(), {});
  if (!plan.ok()) ADD_FAILURE() << Text(plan.problems());
  return plan.ok() ? std::move(*plan) : Plan{};
}

// A machine with an accelerator that no plugin of ours can be for.
Platform XpuPlatform() {
  Platform platform = CpuPlatform();
  platform.name = "max";
  DeviceInfo device = CpuDevice();
  device.platform = "xpu";
  device.product = "Max 1550";
  platform.devices.insert(platform.devices.begin(), device);
  return platform;
}

TEST(ChooseDevice, WithoutADeviceSaysWhatTheProbeSaw) {
  Platform platform = CpuPlatform();
  platform.probes[0] = {"cuda", ProbeOutcome::kNoDriver, "libcuda.so.1 is missing",
                        "install the NVIDIA driver"};
  Spec spec = Placed(BasicSpec(), "platform", 6, 11);
  spec.platform = "cuda";
  PlanAttempt attempt = TryPlan(spec, platform, HybridModel(), {});
  EXPECT_EQ(attempt.check, "platform");
  EXPECT_EQ(Text(attempt.problems),
            "model.yaml:6:11 platform: no cuda device on laptop: cuda: noDriver, libcuda.so.1 is "
            "missing; install the NVIDIA driver");
  spec.platform = "hip";
  EXPECT_EQ(Text(TryPlan(spec, platform, HybridModel(), {}).problems),
            "model.yaml:6:11 platform: no hip device on laptop: hip: absent, no /dev/kfd; set "
            "platform to cpu or reference");
}

TEST(ChooseDevice, AutoSaysWhyABetterPlatformIsNotUsed) {
  Platform platform = CpuPlatform();
  platform.probes[0] = {"cuda", ProbeOutcome::kNoAccess, "/dev/nvidia0: permission denied",
                        "add the device to the container"};
  EXPECT_THAT(Made(BasicSpec(), platform).notes,
              ElementsAre("platform: cuda is not used: noAccess, /dev/nvidia0: permission denied; "
                          "add the device to the container"));
  platform.devices.push_back(CudaDevice(90));
  EXPECT_THAT(Made(BasicSpec(), platform).notes,
              ElementsAre("platform: cuda is not used: noAccess, /dev/nvidia0: permission denied; "
                          "add the device to the container"));
  platform.probes[0] = {"cuda", ProbeOutcome::kFound, "1 x sm_90", ""};
  EXPECT_THAT(Made(BasicSpec(), platform).notes,
              ElementsAre("platform: cuda is not used: no plugin with attention backends; install "
                          "libashlar_cuda.so"));
}

TEST(ChooseDevice, APlatformThatIsNamedNeedsItsPlugin) {
  Platform platform = CpuPlatform();
  platform.devices.push_back(CudaDevice(90));
  DeviceChoice choice = ChooseDevice(platform, "cuda", "model.yaml:6:11 platform");
  EXPECT_EQ(choice.device, -1);
  EXPECT_EQ(choice.problem.Text(),
            "model.yaml:6:11 platform: laptop has a device for cuda but no attention backend: "
            "absent, no libcuda.so.1; install libashlar_cuda.so");
  platform.probes[0] = {"cuda", ProbeOutcome::kBroken,
                        "1 x sm_90; /opt/libashlar_cuda.so: another ABI",
                        "install one of this build"};
  EXPECT_EQ(ChooseDevice(platform, "cuda", "model.yaml:6:11 platform").problem.Text(),
            "model.yaml:6:11 platform: laptop has a device for cuda but no attention backend: "
            "broken, 1 x sm_90; /opt/libashlar_cuda.so: another ABI; install one of this build");
  platform.rows.push_back(testing::AnyRow("FLASH", {testing::Multiple(16)}, "cuda"));
  EXPECT_EQ(ChooseDevice(platform, "cuda", "platform").platform, "cuda");
}

TEST(ChooseDevice, WithoutAnyPluginADeviceExplainsWhatIsMissing) {
  Platform platform = CpuPlatform();
  platform.devices.push_back(CudaDevice(90));
  platform.rows.clear();
  DeviceChoice choice = ChooseDevice(platform, "auto", "platform");
  EXPECT_EQ(choice.platform, "cuda");
  EXPECT_FALSE(choice.notes.empty());
}

TEST(ChooseDevice, RefusesWhatOnlyTheCatalogueKnows) {
  EXPECT_EQ(ChooseDevice(XpuPlatform(), "auto", "platform").problem.Text(),
            "platform: max has a device (Max 1550) that no plugin is for: xpu is known to the "
            "reference catalogue alone; add --catalogue vllm, or set platform to cpu or reference");
  EXPECT_EQ(ChooseDevice(XpuPlatform(), "cpu", "platform").platform, "cpu");
}

TEST(ChooseAnyDevice, TakesTheAcceleratorWhateverPluginsThereAre) {
  Platform platform = XpuPlatform();
  EXPECT_EQ(ChooseAnyDevice(platform, "auto", "platform").target.device.product, "Max 1550");
  EXPECT_EQ(ChooseAnyDevice(platform, "cpu", "platform").platform, "cpu");
  platform = CpuPlatform();
  platform.devices.push_back(CudaDevice(90));
  EXPECT_EQ(ChooseAnyDevice(platform, "auto", "platform").platform, "cuda");
  EXPECT_EQ(ChooseAnyDevice(platform, "hip", "platform").device, -1);
}

TEST(ChooseDevice, ComputesAsThePlatformDoes) {
  EXPECT_EQ(ActivationDType("cpu", DType::kBF16), DType::kF32);
  EXPECT_EQ(ActivationDType("xpu", DType::kBF16), DType::kBF16);
  EXPECT_EQ(ActivationDType("cuda", DType::kF16), DType::kF16);
}

TEST(ChooseDevice, TakesTheFreestOfSeveralDevices) {  // BK-12
  Platform platform;
  platform.name = "node";
  platform.devices = {CudaDevice(90, 0, int64_t{4} << 30), CudaDevice(90, 1, int64_t{79} << 30)};
  platform.rows = {testing::AnyRow("FLASH", {testing::Multiple(16)}, "cuda")};
  Plan plan = Made(BasicSpec(), platform);
  EXPECT_EQ(plan.device, 1);
  EXPECT_EQ(plan.device_number, 1);
  EXPECT_THAT(plan.notes, ElementsAre("device 1 of cuda is used, it has the most free memory (0: "
                                      "4 GiB, 1: 79 GiB)"));
}

TEST(ChooseDevice, NumbersTheDeviceAsItsPluginDoes) {
  Platform platform = CpuPlatform();
  platform.devices.insert(platform.devices.begin(), CudaDevice(90));
  Plan plan = Made(BasicSpec(), platform);
  EXPECT_EQ(plan.device, 1);  // in the list
  EXPECT_EQ(plan.device_number, 0);
  EXPECT_THAT(SelectionLines(plan).front(), HasSubstr(" device=cpu:0"));
}

}  // namespace
}  // namespace ashlar
