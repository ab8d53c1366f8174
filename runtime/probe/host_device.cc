#include "probe/host_device.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "probe/cgroup.h"
#include "probe/cpu_facts.h"

namespace ashlar {
namespace {

// Bytes of a line "MemTotal:  16384 kB" of /proc/meminfo.
std::optional<int64_t> MemoryEntry(std::string_view meminfo, std::string_view key) {
  for (std::string_view line : Lines(meminfo)) {
    std::vector<std::string_view> words = Words(line);
    if (words.size() < 2 || words[0] != key) continue;
    std::optional<int64_t> kilobytes = ParseNumber(words[1]);
    if (!kilobytes || *kilobytes > std::numeric_limits<int64_t>::max() / 1024) return std::nullopt;
    return *kilobytes * 1024;
  }
  return std::nullopt;
}

int UsableThreads(const CpuFacts& facts, const CgroupLimits& limits) {
  CpuSet allowed = facts.allowed;
  if (limits.cpuset && (allowed & *limits.cpuset).any()) allowed &= *limits.cpuset;
  double threads = static_cast<double>(allowed.count());
  // A part of a processor is left unused: a thread that outruns the quota stalls all others at the
  // next barrier.
  if (limits.cpus) threads = std::min(threads, std::floor(*limits.cpus));
  return std::max(1, static_cast<int>(threads));
}

}  // namespace

DeviceInfo ReadHostDevice(const RootFiles& files, const std::string& platform) {
  CpuFacts facts = ReadCpuFacts(files);
  CgroupLimits limits = ReadCgroupLimits(files);
  std::string meminfo = files.Read("/proc/meminfo").value_or("");

  DeviceInfo device;
  device.platform = platform;
  device.product = facts.product;
  device.capability = facts.capability;
  device.memory_space = "host";
  device.memory_bytes = MemoryEntry(meminfo, "MemTotal:").value_or(0);
  std::optional<int64_t> available = MemoryEntry(meminfo, "MemAvailable:");
  if (!available) available = MemoryEntry(meminfo, "MemFree:");
  device.free_bytes = available.value_or(0);
  if (limits.memory_bytes)
    device.memory_bytes = std::min(device.memory_bytes, *limits.memory_bytes);
  if (limits.free_bytes) device.free_bytes = std::min(device.free_bytes, *limits.free_bytes);
  device.free_bytes = std::min(device.free_bytes, device.memory_bytes);
  device.threads = UsableThreads(facts, limits);
  device.numa_nodes = facts.numa_nodes;
  device.l1d_bytes = facts.l1d_bytes;
  device.l2_bytes = facts.l2_bytes;
  device.l3_bytes = facts.l3_bytes;
  return device;
}

}  // namespace ashlar
