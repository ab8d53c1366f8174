#include "cpu_count.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>

namespace ashlar::cpu {
namespace {

class FakeRoot {
 public:
  explicit FakeRoot(const char* name)
      : path_(std::filesystem::path(::testing::TempDir()) / ("cpu_count_" + std::string(name))) {
    std::filesystem::remove_all(path_);
  }
  ~FakeRoot() { std::filesystem::remove_all(path_); }
  void Write(const std::string& file, const std::string& text) const {
    const auto path = path_ / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

std::vector<int> Allowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

TEST(CpuCount, ReadsBothFormsOfQuota) {
  EXPECT_DOUBLE_EQ(QuotaFromCpuMax("150000 100000\n"), 1.5);
  EXPECT_DOUBLE_EQ(QuotaFromCpuMax("max 100000\n"), 0);
  EXPECT_DOUBLE_EQ(QuotaFromCpuMax("-1\n 100000\n"), 0);
  EXPECT_DOUBLE_EQ(QuotaFromCpuMax(""), 0);
}

TEST(CpuCount, WithoutFilesCountsTheAffinityMask) {
  const FakeRoot root("none");
  const UsableCpus usable = FindUsableCpus(root.path());
  EXPECT_EQ(usable.threads, static_cast<int>(Allowed().size()));
  EXPECT_FALSE(usable.limited);
}

TEST(CpuCount, HalfACpuOfQuotaIsOneThread) {
  const FakeRoot root("v2");
  root.Write("proc/self/cgroup", "0::/pod/container\n");
  root.Write("sys/fs/cgroup/pod/container/cpu.max", "max 100000\n");
  root.Write("sys/fs/cgroup/pod/cpu.max", "50000 100000\n");
  EXPECT_EQ(FindUsableCpus(root.path()).threads, 1);
}

TEST(CpuCount, ReadsTheFirstCgroupVersion) {
  const FakeRoot root("v1");
  root.Write("proc/self/cgroup", "3:memory:/pod\n2:cpu,cpuacct:/pod\n");
  root.Write("sys/fs/cgroup/cpu/pod/cpu.cfs_quota_us", "50000\n");
  root.Write("sys/fs/cgroup/cpu/pod/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(FindUsableCpus(root.path()).threads, 1);
}

TEST(CpuCount, SiblingsOfOneCoreCountOnce) {
  const FakeRoot root("siblings");
  for (int cpu : Allowed())
    root.Write(
        "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
        "all\n");
  const UsableCpus usable = FindUsableCpus(root.path());
  EXPECT_EQ(usable.threads, 1);
  ASSERT_EQ(usable.cores.size(), 1u);
  EXPECT_EQ(usable.cores[0], Allowed());
}

}  // namespace
}  // namespace ashlar::cpu
