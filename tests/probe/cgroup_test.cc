#include "probe/cgroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/spec_fake_root.h"

namespace ashlar {
namespace {

using testing::ElementsAre;

constexpr int64_t kGiB = int64_t{1} << 30;
constexpr const char* kV2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";
constexpr const char* kV1 =
    "33 32 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "34 32 0:31 / /sys/fs/cgroup/cpu,cpuacct rw shared:5 - cgroup cgroup rw,cpu,cpuacct\n"
    "35 32 0:32 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n";

CgroupLimits Read(const FakeRoot& root) { return ReadCgroupLimits(RootFiles(root.path())); }

TEST(CgroupMounts, AreReadFromMountinfo) {
  std::vector<CgroupMount> mounts = ParseCgroupMounts(
      "1 0 8:1 / / rw - ext4 /dev/sda rw\n"
      "2 1 0:5 /kubepods/x /sys/fs/my\\040cgroup rw master:1 - cgroup2 none rw\n"
      "3 1 0:6 / /c rw - cgroup cgroup rw,cpu,cpuacct\nbroken line\n - \n");
  ASSERT_EQ(mounts.size(), 2u);
  EXPECT_TRUE(mounts[0].unified);
  EXPECT_EQ(mounts[0].root, "/kubepods/x");
  EXPECT_EQ(mounts[0].point, "/sys/fs/my cgroup");
  EXPECT_FALSE(mounts[1].unified);
  EXPECT_THAT(mounts[1].controllers, ElementsAre("rw", "cpu", "cpuacct"));
}

TEST(CgroupDirectories, GoFromTheGroupUpToTheMount) {
  CgroupMount whole{.unified = true, .controllers = {}, .root = "/", .point = "/m"};
  EXPECT_THAT(CgroupDirectories(whole, "/a/b"), ElementsAre("/m/a/b", "/m/a", "/m"));
  EXPECT_THAT(CgroupDirectories(whole, "/"), ElementsAre("/m"));
  EXPECT_THAT(CgroupDirectories(whole, "/../other"), ElementsAre("/m"));
}

TEST(CgroupDirectories, CutTheRootOfABindMount) {
  CgroupMount part{.unified = false, .controllers = {}, .root = "/docker/x", .point = "/m"};
  EXPECT_THAT(CgroupDirectories(part, "/docker/x"), ElementsAre("/m"));
  EXPECT_THAT(CgroupDirectories(part, "/docker/x/y"), ElementsAre("/m/y", "/m"));
  EXPECT_THAT(CgroupDirectories(part, "/docker/xy"), ElementsAre("/m"));
  EXPECT_THAT(CgroupDirectories(part, "/elsewhere"), ElementsAre("/m"));
}

TEST(CgroupDirectories, EndOnEndlessPaths) {
  CgroupMount whole{.unified = true, .controllers = {}, .root = "/", .point = "/m"};
  std::string path;
  for (int i = 0; i < 10000; ++i) path += "/a";
  EXPECT_LE(CgroupDirectories(whole, path).size(), 65u);
}

TEST(CgroupV2, TakesTheTightestLimitOnTheWayUp) {
  FakeRoot root;
  root.Write("/proc/self/mountinfo", kV2);
  root.Write("/proc/self/cgroup", "0::/pods/mine\n");
  const std::string mine = "/sys/fs/cgroup/pods/mine", pods = "/sys/fs/cgroup/pods";
  root.Write(mine + "/memory.max", "8589934592\n");
  root.Write(mine + "/memory.current", "3221225472\n");
  root.Write(mine + "/memory.stat", "anon 1\ninactive_file 1073741824\n");
  root.Write(mine + "/cpu.max", "max 100000\n");
  root.Write(mine + "/cpuset.cpus.effective", "0-7\n");
  root.Write(pods + "/memory.max", "max\n");
  root.Write(pods + "/memory.high", "10737418240\n");
  root.Write(pods + "/memory.current", "9663676416\n");
  root.Write(pods + "/cpu.max", "350000 100000\n");
  CgroupLimits limits = Read(root);
  EXPECT_EQ(limits.memory_bytes, 8 * kGiB);
  EXPECT_EQ(limits.free_bytes, 1 * kGiB);  // of the group above; its own has 6 GiB left
  EXPECT_EQ(limits.cpus, 3.5);
  EXPECT_EQ(limits.cpuset->count(), 8u);
}

TEST(CgroupV2, FileCacheThatCanBeDroppedIsFree) {
  FakeRoot root;
  root.Write("/proc/self/mountinfo", kV2);
  root.Write("/proc/self/cgroup", "0::/\n");
  root.Write("/sys/fs/cgroup/memory.max", "4294967296");
  root.Write("/sys/fs/cgroup/memory.current", "3221225472");
  root.Write("/sys/fs/cgroup/memory.stat", "inactive_file 2147483648\n");
  EXPECT_EQ(Read(root).free_bytes, 3 * kGiB);
}

TEST(CgroupV2, UsageAboveTheLimitLeavesNothing) {
  FakeRoot root;
  root.Write("/proc/self/mountinfo", kV2);
  root.Write("/proc/self/cgroup", "0::/\n");
  root.Write("/sys/fs/cgroup/memory.max", "1073741824");
  root.Write("/sys/fs/cgroup/memory.current", "3221225472");
  EXPECT_EQ(Read(root).free_bytes, 0);
}

TEST(CgroupV1, TakesEachControllersOwnHierarchy) {
  FakeRoot root;
  root.Write("/proc/self/mountinfo", kV1);
  root.Write("/proc/self/cgroup",
             "9:memory:/docker/x\n4:cpu,cpuacct:/docker/y\n3:cpuset:/\n1:name=systemd:/z\n");
  root.Write("/sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", "2147483648\n");
  root.Write("/sys/fs/cgroup/memory/docker/x/memory.usage_in_bytes", "1073741824\n");
  root.Write("/sys/fs/cgroup/memory/docker/x/memory.stat", "total_inactive_file 536870912\n");
  root.Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  root.Write("/sys/fs/cgroup/cpu,cpuacct/docker/y/cpu.cfs_quota_us", "150000\n");
  root.Write("/sys/fs/cgroup/cpu,cpuacct/docker/y/cpu.cfs_period_us", "100000\n");
  root.Write("/sys/fs/cgroup/cpuset/cpuset.cpus", "1,3\n");
  CgroupLimits limits = Read(root);
  EXPECT_EQ(limits.memory_bytes, 2 * kGiB);
  EXPECT_EQ(limits.free_bytes, 2 * kGiB - kGiB / 2);
  EXPECT_EQ(limits.cpus, 1.5);
  EXPECT_EQ(limits.cpuset, ParseCpuList("1,3"));
}

TEST(CgroupV1, NoQuotaAndNoLimitAreNone) {
  FakeRoot root;
  root.Write("/proc/self/mountinfo", kV1);
  root.Write("/proc/self/cgroup", "9:memory:/\n4:cpu,cpuacct:/\n");
  root.Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  root.Write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  root.Write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  CgroupLimits limits = Read(root);
  EXPECT_EQ(limits.memory_bytes, std::nullopt);
  EXPECT_EQ(limits.cpus, std::nullopt);
}

TEST(Cgroups, OfAnEmptyTreeSetNoLimit) {
  FakeRoot root;
  CgroupLimits limits = Read(root);
  EXPECT_EQ(limits.cpus, std::nullopt);
  EXPECT_EQ(limits.cpuset, std::nullopt);
  EXPECT_EQ(limits.memory_bytes, std::nullopt);
  EXPECT_EQ(limits.free_bytes, std::nullopt);
}

TEST(Cgroups, IgnoreWhatIsNoNumber) {
  for (const char* text :
       {"", "max", "-5", "1e9", "99999999999999999999999", "12 34", "\xff\xfe"}) {
    FakeRoot root;
    root.Write("/proc/self/mountinfo", kV2);
    root.Write("/proc/self/cgroup", "0::/\nx\n:\n::\n0::\n");
    for (const char* file : {"memory.max", "memory.high", "memory.current", "memory.stat",
                             "cpu.max", "cpuset.cpus.effective"})
      root.Write(std::string("/sys/fs/cgroup/") + file, text);
    CgroupLimits limits = Read(root);
    EXPECT_EQ(limits.memory_bytes, std::nullopt) << text;
    if (std::string_view(text) != "12 34") {
      EXPECT_EQ(limits.cpus, std::nullopt) << text;
    }
  }
}

TEST(Cgroups, ZeroPeriodIsNoQuota) {
  FakeRoot root;
  root.Write("/proc/self/mountinfo", kV2);
  root.Write("/proc/self/cgroup", "0::/\n");
  for (const char* text : {"100000 0", "0 100000", "0 0"}) {
    root.Write("/sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(Read(root).cpus, std::nullopt) << text;
  }
}

}  // namespace
}  // namespace ashlar
