#include "cpu_count.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

namespace ashlar::cpu {
namespace {

std::string ReadText(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<int> AllowedCpus() {
  // Machines with more CPUs than a cpu_set_t holds answer EINVAL until the mask is large enough.
  for (int size = CPU_SETSIZE; size <= 1 << 20; size *= 2) {
    cpu_set_t* set = CPU_ALLOC(size);
    if (set == nullptr) break;
    const size_t bytes = CPU_ALLOC_SIZE(size);
    std::vector<int> cpus;
    const bool ok = sched_getaffinity(0, bytes, set) == 0;
    for (int cpu = 0; ok && cpu < size; ++cpu)
      if (CPU_ISSET_S(cpu, bytes, set)) cpus.push_back(cpu);
    CPU_FREE(set);
    if (ok) return cpus;
  }
  return {0};
}

// The tightest quota of this cgroup and those above it.
double CgroupQuota(const std::string& root) {
  double tightest = 0;
  const auto consider = [&](double quota) {
    if (quota > 0 && (tightest == 0 || quota < tightest)) tightest = quota;
  };
  std::istringstream lines(ReadText(root + "/proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    const bool unified = controllers.empty();
    if (!unified && ("," + controllers + ",").find(",cpu,") == std::string::npos) continue;
    const std::string base = root + "/sys/fs/cgroup" + (unified ? "" : "/cpu");
    for (;;) {
      const std::string folder = base + (path == "/" ? "" : path);
      if (unified)
        consider(QuotaFromCpuMax(ReadText(folder + "/cpu.max")));
      else
        consider(QuotaFromCpuMax(ReadText(folder + "/cpu.cfs_quota_us") + " " +
                                 ReadText(folder + "/cpu.cfs_period_us")));
      if (path.empty() || path == "/") break;
      path.resize(path.find_last_of('/'));
    }
  }
  return tightest;
}

}  // namespace

double QuotaFromCpuMax(const std::string& text) {
  std::istringstream in(text);
  std::string quota;
  double period = 0;
  if (!(in >> quota >> period) || period <= 0) return 0;
  const double value = std::atof(quota.c_str());  // "max" and -1 give no limit
  return value > 0 ? value / period : 0;
}

UsableCpus FindUsableCpus(const std::string& root) {
  std::map<std::string, std::vector<int>> cores;
  for (int cpu : AllowedCpus()) {
    std::string siblings = ReadText(root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                                    "/topology/thread_siblings_list");
    if (siblings.empty()) siblings = "alone " + std::to_string(cpu);
    cores[siblings].push_back(cpu);
  }
  UsableCpus usable;
  for (auto& [name, cpus] : cores) usable.cores.push_back(std::move(cpus));
  std::sort(usable.cores.begin(), usable.cores.end());
  const int count = static_cast<int>(usable.cores.size());
  const double quota = CgroupQuota(root);
  usable.threads = std::max(1, count);
  if (quota > 0 && std::ceil(quota) < count) {
    usable.threads = std::max(1, static_cast<int>(std::ceil(quota)));
    usable.limited = true;
  }
  return usable;
}

}  // namespace ashlar::cpu
