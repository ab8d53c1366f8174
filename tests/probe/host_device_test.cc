#include "probe/host_device.h"

#include <gtest/gtest.h>

#include "support/spec_fake_root.h"

namespace ashlar {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

// Sixteen processors and 64 GiB, of which 48 are free.
void WriteHost(const FakeRoot& root) {
  root.Write("/sys/devices/system/cpu/online", "0-15\n");
  root.Write("/proc/self/status", "Cpus_allowed_list:\t0-15\n");
  root.Write("/proc/meminfo",
             "MemTotal:       67108864 kB\nMemFree:   1 kB\nMemAvailable:   50331648 kB\n");
  root.Write("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  root.Write("/proc/self/cgroup", "0::/\n");
}

DeviceInfo Read(const FakeRoot& root) { return ReadHostDevice(RootFiles(root.path()), "cpu"); }

TEST(HostDevice, WithoutLimitsIsTheHost) {
  FakeRoot root;
  WriteHost(root);
  DeviceInfo device = Read(root);
  EXPECT_EQ(device.platform, "cpu");
  EXPECT_EQ(device.memory_space, "host");
  EXPECT_EQ(device.threads, 16);
  EXPECT_EQ(device.memory_bytes, 64 * kGiB);
  EXPECT_EQ(device.free_bytes, 48 * kGiB);
}

TEST(HostDevice, MemoryIsTheCgroupsNotTheHosts) {
  FakeRoot root;
  WriteHost(root);
  root.Write("/sys/fs/cgroup/memory.max", "8589934592");
  root.Write("/sys/fs/cgroup/memory.current", "1073741824");
  DeviceInfo device = Read(root);
  EXPECT_EQ(device.memory_bytes, 8 * kGiB);
  EXPECT_EQ(device.free_bytes, 7 * kGiB);
}

TEST(HostDevice, ALooseCgroupDoesNotRaiseWhatTheHostHas) {
  FakeRoot root;
  WriteHost(root);
  root.Write("/sys/fs/cgroup/memory.max", "1099511627776");
  root.Write("/sys/fs/cgroup/memory.current", "0");
  DeviceInfo device = Read(root);
  EXPECT_EQ(device.memory_bytes, 64 * kGiB);
  EXPECT_EQ(device.free_bytes, 48 * kGiB);
}

TEST(HostDevice, ThreadsAreTheLeastOfAffinityCpusetAndQuota) {
  struct Case {
    const char *affinity, *cpuset, *quota;
    int threads;
  };
  const Case cases[] = {
      {"0-15", "0-15", "max 100000", 16},   {"0-3", "0-15", "max 100000", 4},
      {"0-15", "4-9", "max 100000", 6},     {"0-7", "4-15", "max 100000", 4},
      {"0-15", "0-15", "300000 100000", 3}, {"0-15", "0-15", "350000 100000", 3},
      {"0-15", "0-15", "50000 100000", 1},  {"0-1", "0-15", "800000 100000", 2},
  };
  for (const Case& c : cases) {
    FakeRoot root;
    WriteHost(root);
    root.Write("/proc/self/status", std::string("Cpus_allowed_list:\t") + c.affinity + "\n");
    root.Write("/sys/fs/cgroup/cpuset.cpus.effective", c.cpuset);
    root.Write("/sys/fs/cgroup/cpu.max", c.quota);
    EXPECT_EQ(Read(root).threads, c.threads) << c.affinity << " " << c.cpuset << " " << c.quota;
  }
}

TEST(HostDevice, OfAnEmptyTreeHasOneThreadAndNoMemory) {
  FakeRoot root;
  DeviceInfo device = Read(root);
  EXPECT_EQ(device.threads, 1);
  EXPECT_EQ(device.memory_bytes, 0);
  EXPECT_EQ(device.free_bytes, 0);
}

TEST(HostDevice, HugeMeminfoDoesNotWrap) {
  FakeRoot root;
  root.Write("/proc/meminfo", "MemTotal: 9223372036854775807 kB\nMemAvailable: 5 kB\n");
  EXPECT_EQ(Read(root).memory_bytes, 0);
}

TEST(HostDevice, OfThisMachineIsPlausible) {
  DeviceInfo device = ReadHostDevice(RootFiles(""), "cpu");
  EXPECT_GE(device.threads, 1);
  EXPECT_GT(device.memory_bytes, 0);
  EXPECT_LE(device.free_bytes, device.memory_bytes);
  EXPECT_NE(device.product, "");
}

}  // namespace
}  // namespace ashlar
