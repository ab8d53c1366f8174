// The limits that cgroups set for this process, version 1 or 2, on its own group and on every group
// above it that is visible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probe/cpu_facts.h"
#include "probe/root_files.h"

namespace ashlar {

struct CgroupLimits {
  std::optional<double> cpus;           // quota, in processors
  std::optional<CpuSet> cpuset;         // that it may run on
  std::optional<int64_t> memory_bytes;  // the smallest limit
  // The smallest of limit less usage, file cache that can be dropped not counted as used.
  std::optional<int64_t> free_bytes;
};
CgroupLimits ReadCgroupLimits(const RootFiles& files);

// A mounted hierarchy: version 2, or version 1 with some controllers.
struct CgroupMount {
  bool unified = false;
  std::vector<std::string> controllers;  // version 1
  std::string root;                      // the group that is visible as the top of the mount
  std::string point;                     // where it is mounted
};
std::vector<CgroupMount> ParseCgroupMounts(std::string_view mountinfo);

// Directories of the group `path` and those above it, innermost first.
std::vector<std::string> CgroupDirectories(const CgroupMount& mount, std::string_view path);

}  // namespace ashlar
