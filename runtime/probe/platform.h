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

// A processor, a GPU, or a part of a GPU that is given out on its own.
struct DeviceInfo {
  std::string platform;  // cpu | cuda | hip | reference; xpu in a profile only
  int index = 0;         // as the platform's runtime numbers what this process may use
  std::string product;   // "AMD EPYC", "NVIDIA H200"
  Capability capability;
  std::string id;         // the vendor's name of this one: "GPU-5a0c...", "MIG-...", "0000:63:00.0"
  std::string driver;     // "580.65.06 (CUDA 13.0)"; "" where there is none
  std::string partition;  // "MIG 1g.10gb", "CPX 3 of 8"; "" for a whole device
  std::string link;       // devices with the same word are joined by xGMI; "" when none is known
  int compute_units = 0;  // SMs or CUs; 0 on the host
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

// What is given to dlopen for each vendor.
struct VendorLibraries {
  std::string cuda = "libcuda.so.1";
  std::string nvml = "libnvidia-ml.so.1";
  std::vector<std::string> hip = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"};
};

struct ProbeOptions {
  std::string plugin_directory;  // empty: DefaultPluginDirectory()
  std::string root;              // prefix of /sys, /proc and /dev, for tests; empty: the real ones
  VendorLibraries libraries = {};
  int driver_seconds = 60;  // a driver that takes longer is broken; many GPUs need several
};
Platform ProbePlatform(const ProbeOptions& options);

Json ToJson(const Platform& platform);
Result<Platform> PlatformFromJson(const Json& json, std::string_view place);
// A captured file, or a name of a profile inside the binary.
Result<Platform> ReadPlatform(const std::string& file_or_name);
// One name for each profile.
std::vector<std::string> PlatformProfiles();

}  // namespace ashlar
