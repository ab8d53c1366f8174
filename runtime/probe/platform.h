// This machine as a value: what may be planned on. Printable, buildable by hand, captured on one
// machine and replayed on another.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "device/row.h"

namespace ashlar {

enum class ProbeOutcome { kFound, kAbsent, kNoDriver, kNoAccess, kBroken };
std::string_view Name(ProbeOutcome outcome);  // found, absent, noDriver, noAccess, broken

// What a device can do, with its unit; compared only with rows of the same unit.
struct Capability {
  CapabilityUnit unit = CapabilityUnit::kAny;
  uint32_t value = 0;              // cuda: major*10+minor, gfx: hex digits, cpu: isa bits
  std::vector<std::string> names;  // {"9.0"}, {"gfx942"}, {"avx2", "avx512f", ...}
  bool operator==(const Capability&) const = default;
};

// Bits of Capability::value for unit cpu.
enum CpuIsa : uint32_t {
  kAvx2 = 1 << 0,
  kAvx512 = 1 << 1,
  kAvx512Vnni = 1 << 2,
  kAvx512Bf16 = 1 << 3,
  kAmx = 1 << 4,
  kAvxVnni = 1 << 5,
};

struct DeviceInfo {
  std::string platform;  // cpu | cuda | hip | reference
  int index = 0;
  std::string product;  // "AMD EPYC", "NVIDIA H200"
  Capability capability;
  std::string memory_space;  // devices with the same word share pointers: "host"
  int64_t memory_bytes = 0;  // usable by this process, limits counted
  int64_t free_bytes = 0;
  int threads = 0;  // cpu: that this process may use (affinity and cgroup quota counted)
  int numa_nodes = 0;
  int64_t l1d_bytes = 0, l2_bytes = 0, l3_bytes = 0;
  bool operator==(const DeviceInfo&) const = default;
};

struct PlatformProbe {
  std::string platform;
  ProbeOutcome outcome = ProbeOutcome::kAbsent;
  std::string detail;  // what was seen: evidence, error code
  std::string next;    // what to do, for noDriver, noAccess and broken
  bool operator==(const PlatformProbe&) const = default;
};

struct Platform {
  std::string name;                   // host name, or the profile's
  std::vector<PlatformProbe> probes;  // one for each platform we know, found or not
  std::vector<DeviceInfo> devices;
  std::vector<AttentionRow>
      rows;  // of every plugin found (a profile: every row known for its platforms)
  bool operator==(const Platform&) const = default;
};

struct ProbeOptions {
  std::string plugin_directory;  // empty: DefaultPluginDirectory()
  std::string root;              // prefix of /sys, /proc and /dev, for tests; empty: the real ones
};
Platform ProbePlatform(const ProbeOptions& options);

Json ToJson(const Platform& platform);
Result<Platform> PlatformFromJson(const Json& json, std::string_view place);
// A captured file, or the name of a profile inside the binary.
Result<Platform> ReadPlatform(const std::string& file_or_name);
std::vector<std::string> PlatformProfiles();

}  // namespace ashlar
