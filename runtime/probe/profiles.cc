#include "probe/profiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/mapped_file.h"
#include "base/nearest.h"
#include "probe/cpu_facts.h"

namespace ashlar {
namespace {

constexpr int64_t kKiB = 1 << 10;
constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kGiB = 1 << 30;
constexpr int64_t kCaptureBytes = 4 * kMiB;

constexpr uint32_t kIsaAvx512 = kAvx2 | kAvx512 | kAvx512Vnni | kAvx512Bf16;
constexpr uint32_t kIsaAmx = kIsaAvx512 | kAmx | kAvxVnni;

// A machine with at most one kind of accelerator. Memory is what is free before anything runs.
struct Profile {
  std::string_view name;
  // The accelerator; platform "" for none.
  std::string_view platform, product, capability_name;
  CapabilityUnit unit;
  uint32_t capability;
  int64_t memory_bytes, free_bytes;
  // The host.
  std::string_view cpu;
  uint32_t isa;
  int threads, numa_nodes;
  int64_t host_bytes, l1d_bytes, l2_bytes, l3_bytes;
};

constexpr std::array<Profile, 7> kProfiles = {{
    {"h100", "cuda", "NVIDIA H100 80GB HBM3", "9.0", CapabilityUnit::kCuda, 90, 81559 * kMiB,
     81000 * kMiB, "Intel Xeon Platinum 8480", kIsaAmx, 48, 2, 256 * kGiB, 48 * kKiB, 2 * kMiB,
     105 * kMiB},
    {"h200", "cuda", "NVIDIA H200", "9.0", CapabilityUnit::kCuda, 90, 143771 * kMiB, 143100 * kMiB,
     "Intel Xeon Platinum 8480", kIsaAmx, 48, 2, 256 * kGiB, 48 * kKiB, 2 * kMiB, 105 * kMiB},
    {"mi300x", "hip", "AMD Instinct MI300X", "gfx942", CapabilityUnit::kGfx, 0x942, 192 * kGiB,
     191 * kGiB, "AMD EPYC 9654", kIsaAvx512, 48, 2, 256 * kGiB, 32 * kKiB, 1 * kMiB, 32 * kMiB},
    {"mi210", "hip", "AMD Instinct MI210", "gfx90a", CapabilityUnit::kGfx, 0x90a, 64 * kGiB,
     63 * kGiB, "AMD EPYC 7763", kAvx2, 32, 2, 256 * kGiB, 32 * kKiB, 512 * kKiB, 32 * kMiB},
    {"cpu-avx2", "", "", "", CapabilityUnit::kAny, 0, 0, 0, "AMD EPYC 7763", kAvx2, 16, 1,
     64 * kGiB, 32 * kKiB, 512 * kKiB, 32 * kMiB},
    {"cpu-avx512", "", "", "", CapabilityUnit::kAny, 0, 0, 0, "AMD EPYC 9654", kIsaAvx512, 16, 1,
     64 * kGiB, 32 * kKiB, 1 * kMiB, 32 * kMiB},
    {"cpu-amx", "", "", "", CapabilityUnit::kAny, 0, 0, 0, "Intel Xeon Platinum 8480", kIsaAmx, 16,
     1, 64 * kGiB, 48 * kKiB, 2 * kMiB, 105 * kMiB},
}};

DeviceInfo Accelerator(const Profile& profile) {
  DeviceInfo device;
  device.platform = profile.platform;
  device.product = profile.product;
  device.capability = {profile.unit, profile.capability, {std::string(profile.capability_name)}};
  device.memory_space = fmt::format("{}:0", profile.platform);
  device.memory_bytes = profile.memory_bytes;
  device.free_bytes = profile.free_bytes;
  return device;
}

DeviceInfo Host(const Profile& profile, const char* platform) {
  DeviceInfo device;
  device.platform = platform;
  device.product = profile.cpu;
  device.capability = {CapabilityUnit::kCpu, profile.isa, IsaNames(profile.isa)};
  device.memory_space = "host";
  device.memory_bytes = profile.host_bytes;
  device.free_bytes = profile.host_bytes / 16 * 15;
  device.threads = profile.threads;
  device.numa_nodes = profile.numa_nodes;
  device.l1d_bytes = profile.l1d_bytes;
  device.l2_bytes = profile.l2_bytes;
  device.l3_bytes = profile.l3_bytes;
  return device;
}

Platform Expand(const Profile& profile) {
  Platform platform;
  platform.name = profile.name;
  for (const char* name : {"cuda", "hip", "cpu", "reference"}) {
    const bool host = std::string_view(name) == "cpu" || std::string_view(name) == "reference";
    const bool found = host || profile.platform == name;
    platform.probes.push_back({.platform = name,
                               .outcome = found ? ProbeOutcome::kFound : ProbeOutcome::kAbsent,
                               .detail = fmt::format("profile {}", profile.name),
                               .next = {}});
    if (!found) continue;
    platform.devices.push_back(host ? Host(profile, name) : Accelerator(profile));
    for (const AttentionRow& row : KnownRows()) {
      if (row.platform == name) platform.rows.push_back(row);
    }
  }
  return platform;
}

}  // namespace

std::optional<Platform> FindProfile(std::string_view name) {
  for (const Profile& profile : kProfiles) {
    if (profile.name == name) return Expand(profile);
  }
  return std::nullopt;
}

std::vector<std::string> PlatformProfiles() {
  std::vector<std::string> names;
  for (const Profile& profile : kProfiles) names.emplace_back(profile.name);
  return names;
}

Result<Platform> ReadPlatform(const std::string& file_or_name) {
  if (std::optional<Platform> profile = FindProfile(file_or_name)) return *std::move(profile);
  Result<std::string> text = ReadTextFile(file_or_name, kCaptureBytes);
  if (!text.ok()) {
    std::vector<std::string> names = PlatformProfiles();
    std::string nearest = Nearest(file_or_name, names);
    Problems problems = text.problems();
    problems.push_back({file_or_name, "no profile of that name", OneOf(names),
                        nearest.empty() ? "name a profile, or a file of ashlar probe --capture"
                                        : fmt::format("did you mean {}?", nearest)});
    return problems;
  }
  Result<Json> json = ParseJson(*text, file_or_name);
  if (!json.ok()) return json.problems();
  return PlatformFromJson(*json, file_or_name);
}

}  // namespace ashlar
