#include "probe/nvidia_driver.h"

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

constexpr size_t kGiB = size_t{1} << 30;

// Two H200 whose driver and NVML are well.
class NvidiaDriver : public testing::Test {
 protected:
  NvidiaDriver()
      : cuda_(StubState<stub_cuda>("cuda_stub", STUB_CUDA_STATE)),
        nvml_(StubState<stub_nvml>("nvml_stub", STUB_NVML_STATE)) {
    cuda_ = {};
    nvml_ = {};
    cuda_.version = 13000;
    cuda_.count = 2;
    nvml_.count = 2;
    std::strcpy(nvml_.driver, "580.65.06");
    for (int i = 0; i < 2; ++i) {
      stub_cuda_device& device = cuda_.devices[i];
      std::strcpy(device.name, "NVIDIA H200");
      device.major = 9;
      device.units = 132;
      device.memory = 139 * kGiB;
      for (unsigned char j = 0; j < 16; ++j)
        device.uuid[j] = static_cast<unsigned char>(16 * i + j);
      std::strcpy(nvml_.gpus[i].uuid, i == 0 ? "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"
                                             : "GPU-10111213-1415-1617-1819-1a1b1c1d1e1f");
      nvml_.gpus[i].free_bytes = (100 + static_cast<unsigned>(i)) * kGiB;
    }
  }

  Accelerators Ask(const VendorLibraries& libraries = {StubPath("cuda_stub"),
                                                       StubPath("nvml_stub")}) const {
    return AskNvidiaDriver(RootFiles(root_.path()), libraries);
  }

  FakeRoot root_;
  stub_cuda& cuda_;
  stub_nvml& nvml_;
};

TEST_F(NvidiaDriver, FoundDescribesEachDevice) {
  Accelerators found = Ask();
  EXPECT_EQ(found.probe.platform, "cuda");
  EXPECT_EQ(found.probe.outcome, ProbeOutcome::kFound);
  EXPECT_EQ(found.probe.detail, "driver 580.65.06 (CUDA 13.0), 2 devices");
  EXPECT_EQ(found.probe.next, "");
  ASSERT_EQ(found.devices.size(), 2u);
  DeviceInfo wanted;
  wanted.platform = "cuda";
  wanted.index = 1;
  wanted.product = "NVIDIA H200";
  wanted.capability = {CapabilityUnit::kCuda, 90, {"9.0"}};
  wanted.id = "GPU-10111213-1415-1617-1819-1a1b1c1d1e1f";
  wanted.driver = "580.65.06 (CUDA 13.0)";
  wanted.compute_units = 132;
  wanted.memory_space = "cuda:1";
  wanted.memory_bytes = 139 * kGiB;
  wanted.free_bytes = 101 * kGiB;
  EXPECT_EQ(found.devices[1], wanted);
}

TEST_F(NvidiaDriver, WithoutNvmlAllMemoryCountsAsFree) {
  for (const char* library : {"/no/such/libnvidia-ml.so.1", ""}) {
    Accelerators found = Ask({StubPath("cuda_stub"), library});
    EXPECT_EQ(found.probe.detail, "driver of unknown version (CUDA 13.0), 2 devices");
    ASSERT_EQ(found.devices.size(), 2u);
    EXPECT_EQ(found.devices[0].free_bytes, found.devices[0].memory_bytes);
    EXPECT_EQ(found.devices[0].id, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
  }
  nvml_.init_code = 9;
  EXPECT_EQ(Ask().devices[0].free_bytes, Ask().devices[0].memory_bytes);
}

TEST_F(NvidiaDriver, AnIntegratedGpuHasFreeWhatTheHostHas) {
  root_.Write("/proc/meminfo", "MemTotal: 125829120 kB\nMemAvailable: 104857600 kB\n");
  cuda_.devices[0].integrated = 1;
  cuda_.devices[0].memory = 119 * kGiB;
  nvml_.gpus[0].memory_fails = 1;
  EXPECT_EQ(Ask().devices[0].free_bytes, static_cast<int64_t>(100 * kGiB));
}

TEST_F(NvidiaDriver, AMigInstanceIsADeviceWithItsOwnMemory) {
  cuda_.count = 1;
  nvml_.count = 1;
  std::strcpy(cuda_.devices[0].name, "NVIDIA H100 80GB HBM3 MIG 1g.10gb");
  cuda_.devices[0].memory = 10 * kGiB;
  nvml_.gpus[0].mig = 1;
  nvml_.gpus[0].instances = 7;
  nvml_.gpus[0].uuid[0] = '\0';
  std::strcpy(nvml_.gpus[2].uuid, "MIG-00010203-0405-0607-0809-0a0b0c0d0e0f");
  nvml_.gpus[2].free_bytes = 9 * kGiB;
  nvml_.gpus[2].parent = 1;
  Accelerators found = Ask();
  EXPECT_EQ(found.probe.detail,
            "driver 580.65.06 (CUDA 13.0), 1 devices; 1 of 7 MIG instances are visible to this "
            "process");
  ASSERT_EQ(found.devices.size(), 1u);
  EXPECT_EQ(found.devices[0].product, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(found.devices[0].partition, "MIG 1g.10gb");
  EXPECT_EQ(found.devices[0].id, "MIG-00010203-0405-0607-0809-0a0b0c0d0e0f");
  EXPECT_EQ(found.devices[0].memory_bytes, static_cast<int64_t>(10 * kGiB));
  EXPECT_EQ(found.devices[0].free_bytes, static_cast<int64_t>(9 * kGiB));

  nvml_.gpus[0].uncorrected_errors = 2;  // of the GPU that it is a part of
  EXPECT_EQ(Ask().probe.outcome, ProbeOutcome::kBroken);
}

TEST_F(NvidiaDriver, NoAccessWithoutTheLibrary) {
  PlatformProbe probe = Ask({"/no/such/libcuda.so.1", StubPath("nvml_stub")}).probe;
  EXPECT_EQ(probe.outcome, ProbeOutcome::kNoAccess);
  EXPECT_EQ(probe.detail,
            "/no/such/libcuda.so.1: cannot open shared object file: No such file or directory");
  EXPECT_THAT(probe.next, HasSubstr("NVIDIA_DRIVER_CAPABILITIES must hold compute and utility"));
}

TEST_F(NvidiaDriver, BrokenWhenTheLibraryIsNone) {
  root_.Write("/libcuda.so.1", "no library");
  PlatformProbe probe = Ask({root_.path() + "/libcuda.so.1", ""}).probe;
  EXPECT_EQ(probe.outcome, ProbeOutcome::kBroken);
  EXPECT_THAT(probe.detail, HasSubstr("libcuda.so.1: file too short"));
  EXPECT_EQ(probe.next, "use the node's own libcuda.so.1");
}

TEST_F(NvidiaDriver, BrokenWhenASymbolIsMissing) {
  PlatformProbe probe = Ask({StubPath("cuda_without_count"), ""}).probe;
  EXPECT_EQ(probe.outcome, ProbeOutcome::kBroken);
  EXPECT_THAT(probe.detail, EndsWith("cuda_without_count.so has no cuDeviceGetCount"));
  EXPECT_EQ(probe.next, "update the NVIDIA driver on the node");
}

TEST_F(NvidiaDriver, ErrorsOfInitSayWhatToDo) {
  struct Case {
    int code;
    ProbeOutcome outcome;
    const char *detail, *next;
  };
  for (const Case& c : {
           Case{802, ProbeOutcome::kBroken, "cuInit: CUDA_ERROR_SYSTEM_NOT_READY (802)",
                "nvidia-fabricmanager"},
           Case{803, ProbeOutcome::kBroken, "cuInit: error 803", "libcuda is not of the node's"},
           Case{101, ProbeOutcome::kNoAccess, "cuInit: CUDA_ERROR_INVALID_DEVICE (101)",
                "CUDA_VISIBLE_DEVICES"},
           Case{304, ProbeOutcome::kNoAccess, "cuInit: error 304", "nvidia.com/gpu"},
           Case{999, ProbeOutcome::kBroken, "cuInit: error 999", "Xid lines"},
           Case{-7, ProbeOutcome::kBroken, "cuInit: error -7", "Xid lines"},
       }) {
    cuda_.init_code = c.code;
    Accelerators failed = Ask();
    EXPECT_EQ(failed.probe.outcome, c.outcome) << c.code;
    EXPECT_EQ(failed.probe.detail, c.detail);
    EXPECT_THAT(failed.probe.next, HasSubstr(c.next)) << c.code;
    EXPECT_THAT(failed.devices, IsEmpty());
  }
}

TEST_F(NvidiaDriver, NoAccessWhenDevicesAreHiddenFromThisProcess) {
  cuda_.init_code = 100;
  PlatformProbe probe = Ask().probe;
  EXPECT_EQ(probe.outcome, ProbeOutcome::kNoAccess);
  EXPECT_EQ(probe.detail, "2 GPUs, none of them visible to this process");
  EXPECT_THAT(probe.next, HasSubstr("CUDA_VISIBLE_DEVICES"));
  cuda_.init_code = cuda_.count = 0;
  EXPECT_EQ(Ask().probe, probe);
}

TEST_F(NvidiaDriver, BrokenWhenMigHasNoInstance) {
  cuda_.init_code = 100;
  nvml_.gpus[0].mig = nvml_.gpus[1].mig = 1;
  PlatformProbe probe = Ask().probe;
  EXPECT_EQ(probe.outcome, ProbeOutcome::kBroken);
  EXPECT_EQ(probe.detail, "2 GPUs are in MIG mode and have no instance");
  EXPECT_THAT(probe.next, HasSubstr("nvidia-smi mig -cgi"));
}

TEST_F(NvidiaDriver, BrokenWhenNobodyKnowsADevice) {
  cuda_.init_code = 100;
  nvml_.count = 0;
  PlatformProbe probe = Ask().probe;
  EXPECT_EQ(probe.outcome, ProbeOutcome::kBroken);
  EXPECT_EQ(probe.detail, "the driver shows no device");
}

TEST_F(NvidiaDriver, AFailedCountIsNotRead) {
  cuda_.count_code = 802;
  PlatformProbe probe = Ask().probe;
  EXPECT_EQ(probe.outcome, ProbeOutcome::kBroken);
  EXPECT_EQ(probe.detail, "cuDeviceGetCount: CUDA_ERROR_SYSTEM_NOT_READY (802)");
}

TEST_F(NvidiaDriver, ImpossibleCountsAreRefused) {
  for (int count : {-1, 4097, 2147483647}) {
    cuda_.count = count;
    PlatformProbe probe = Ask().probe;
    EXPECT_EQ(probe.outcome, ProbeOutcome::kBroken);
    EXPECT_EQ(probe.detail, "the driver counts " + std::to_string(count) + " devices");
  }
}

TEST_F(NvidiaDriver, ThousandsOfDevicesAreListed) {
  cuda_.count = 4096;
  for (stub_cuda_device& device : cuda_.devices) device = cuda_.devices[0];
  nvml_.count = 4'000'000'000;
  nvml_.gpus[0].mig = 1;
  nvml_.gpus[0].instances = -1;  // says yes for ever
  EXPECT_EQ(Ask().devices.size(), 4096u);
}

TEST_F(NvidiaDriver, ADeviceWithImpossibleValuesIsLeftOutByName) {
  struct Case {
    void (*spoil)(stub_cuda_device&);
    const char* why;
  };
  for (const Case& c : {
           Case{[](stub_cuda_device& d) { d.memory = 0; }, "0 bytes of memory"},
           Case{[](stub_cuda_device& d) { d.memory = size_t{1} << 63; },
                "9223372036854775808 bytes of memory"},
           Case{[](stub_cuda_device& d) { d.memory_fails = 1; },
                "the size of its memory is not stated"},
           Case{[](stub_cuda_device& d) { d.major = -5; }, "compute capability -5.0"},
           Case{[](stub_cuda_device& d) { d.major = 2147483647; },
                "compute capability 2147483647.0"},
           Case{[](stub_cuda_device& d) { d.minor = 10; }, "compute capability 9.10"},
           Case{[](stub_cuda_device& d) { d.capability_fails = 1; },
                "its compute capability is not stated"},
       }) {
    const stub_cuda_device whole = cuda_.devices[0];
    c.spoil(cuda_.devices[0]);
    Accelerators found = Ask();
    EXPECT_EQ(found.probe.outcome, ProbeOutcome::kFound);
    EXPECT_EQ(found.probe.detail,
              std::string("driver 580.65.06 (CUDA 13.0), 1 devices; not used: device 0 (NVIDIA "
                          "H200, GPU-00010203-0405-0607-0809-0a0b0c0d0e0f): ") +
                  c.why);
    ASSERT_EQ(found.devices.size(), 1u);
    EXPECT_EQ(found.devices[0].index, 1);
    cuda_.devices[0] = whole;
  }
}

TEST_F(NvidiaDriver, OutputsOfFailedCallsAreNotRead) {
  cuda_.devices[0].name_fails = 1;
  cuda_.devices[0].uuid_fails = 1;
  nvml_.gpus[1].memory_fails = 1;
  nvml_.gpus[1].ecc_fails = 1;
  Accelerators found = Ask();
  ASSERT_EQ(found.devices.size(), 2u) << found.probe.detail;
  EXPECT_EQ(found.devices[0].product, "NVIDIA GPU");
  EXPECT_EQ(found.devices[0].id, "");
  EXPECT_EQ(found.devices[1].free_bytes, found.devices[1].memory_bytes);
  cuda_.devices[0].get_fails = 1;
  EXPECT_THAT(Ask().probe.detail,
              HasSubstr("not used: device 0: cuDeviceGet: CUDA_ERROR_INVALID_DEVICE (101)"));
}

TEST_F(NvidiaDriver, TextWithoutAnEndOrOfBinaryIsMadePlain) {
  std::memset(cuda_.devices[0].name, 'N', sizeof cuda_.devices[0].name);
  std::memset(nvml_.driver, '5', sizeof nvml_.driver);
  std::strcpy(cuda_.devices[1].name, "\xff\x01GPU\n");
  cuda_.devices[1].units = -3;
  nvml_.gpus[0].free_bytes = ~0ull;
  Accelerators found = Ask();
  ASSERT_EQ(found.devices.size(), 2u);
  EXPECT_EQ(found.devices[0].product, std::string(96, 'N'));
  EXPECT_EQ(found.devices[0].driver, std::string(80, '5') + " (CUDA 13.0)");
  EXPECT_EQ(found.devices[0].free_bytes, found.devices[0].memory_bytes);
  EXPECT_EQ(found.devices[1].product, "??GPU?");
  EXPECT_EQ(found.devices[1].compute_units, 0);
}

TEST_F(NvidiaDriver, AFaultyGpuIsNotUsed) {  // GP-03
  struct Case {
    void (*spoil)(stub_nvml_gpu&);
    const char* why;
  };
  for (const Case& c : {
           Case{[](stub_nvml_gpu& g) { g.uncorrected_errors = 1; },
                "1 uncorrectable ECC errors since the driver was loaded"},
           Case{[](stub_nvml_gpu& g) { g.pages_pending = 1; }, "memory pages wait to be retired"},
           Case{[](stub_nvml_gpu& g) { g.rows_pending = 1; }, "memory rows wait to be remapped"},
           Case{[](stub_nvml_gpu& g) { g.row_failed = 1; }, "a memory row could not be remapped"},
       }) {
    const stub_nvml whole = nvml_;
    c.spoil(nvml_.gpus[0]);
    Accelerators found = Ask();
    EXPECT_EQ(found.probe.outcome, ProbeOutcome::kFound);
    EXPECT_THAT(found.probe.detail,
                EndsWith(std::string("not used: device 0 (NVIDIA H200, "
                                     "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f): ") +
                         c.why));
    EXPECT_EQ(found.devices.size(), 1u);
    c.spoil(nvml_.gpus[1]);
    found = Ask();
    EXPECT_EQ(found.probe.outcome, ProbeOutcome::kBroken);
    EXPECT_THAT(found.probe.next, HasSubstr("drain the node and reset or replace the GPU"));
    EXPECT_THAT(found.devices, IsEmpty());
    nvml_ = whole;
  }
}

// Devices, driver and runtime together, with the driver in a child process.
TEST_F(NvidiaDriver, FilesAndDriverTogether) {
  const VendorLibraries stubs = {StubPath("cuda_stub"), StubPath("nvml_stub")};
  const RootFiles files(root_.path());
  // Nothing speaks for a GPU: the driver, which would show two, is not asked.
  EXPECT_EQ(ProbeNvidia(files, stubs, 60).probe.outcome, ProbeOutcome::kAbsent);

  WriteNvidia(root_);
  Accelerators found = ProbeNvidia(files, stubs, 60);
  EXPECT_EQ(found.probe.outcome, ProbeOutcome::kFound) << found.probe.detail;
  EXPECT_EQ(found.devices, Ask().devices);

  Accelerators missing = ProbeNvidia(files, {"/no/such/libcuda.so.1", ""}, 60);
  EXPECT_EQ(missing.probe.outcome, ProbeOutcome::kNoAccess);
  EXPECT_THAT(missing.probe.detail,
              HasSubstr("driver 580.65.06, 4 device files; /no/such/libcuda.so.1: cannot open"));

  // Sandboxes show the devices without the files of the driver.
  root_.Remove("/proc/driver");
  EXPECT_EQ(ProbeNvidia(files, stubs, 60).probe.outcome, ProbeOutcome::kFound);
  missing = ProbeNvidia(files, {"/no/such/libcuda.so.1", ""}, 60);
  EXPECT_EQ(missing.probe.outcome, ProbeOutcome::kNoDriver);
  EXPECT_THAT(missing.probe.detail, HasSubstr("no /proc/driver/nvidia/version; /no/such/libcuda"));
  EXPECT_THAT(missing.probe.next, HasSubstr("install the NVIDIA driver"));
}

TEST_F(NvidiaDriver, ADriverThatHangsOrCrashesIsBroken) {
  WriteNvidia(root_);
  const VendorLibraries stubs = {StubPath("cuda_stub"), StubPath("nvml_stub")};
  cuda_.init_hangs = 1;
  PlatformProbe probe = ProbeNvidia(RootFiles(root_.path()), stubs, 1).probe;
  EXPECT_EQ(probe.outcome, ProbeOutcome::kBroken);
  EXPECT_THAT(probe.detail, EndsWith("the driver did not answer within 1000 ms"));
  EXPECT_THAT(probe.next, HasSubstr("reset the GPU or restart the node"));
  cuda_.init_hangs = 0;
  cuda_.init_crashes = 1;
  probe = ProbeNvidia(RootFiles(root_.path()), stubs, 60).probe;
  EXPECT_EQ(probe.outcome, ProbeOutcome::kBroken);
  EXPECT_THAT(probe.detail, EndsWith("the driver crashed: Killed"));
}

}  // namespace
}  // namespace ashlar
