// What this process may use: its affinity mask, one thread a core, and the cgroup's CPU quota.
#pragma once

#include <string>
#include <vector>

namespace ashlar::cpu {

struct UsableCpus {
  std::vector<std::vector<int>> cores;  // allowed CPUs, grouped by physical core
  int threads = 1;                      // one a core, no more than the quota rounded up
  bool limited = false;                 // the quota is below the number of cores
};

// `root` is put before /sys and /proc.
UsableCpus FindUsableCpus(const std::string& root = "");

// CPUs of a quota in the two cgroup forms, e.g. "150000 100000" of cpu.max; 0 when unlimited or not
// readable.
double QuotaFromCpuMax(const std::string& text);

}  // namespace ashlar::cpu
