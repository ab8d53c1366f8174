#include "probe/profiles.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/mapped_file.h"
#include "base/nearest.h"
#include "probe/cpu_facts.h"
#include "probe/profile_table.h"

namespace ashlar {
namespace {

using profile_table::kProfiles;

constexpr int64_t kCaptureBytes = 4 << 20;

DeviceInfo Accelerator(const Profile& profile) {
  DeviceInfo device;
  device.platform = profile.platform;
  device.product = profile.product;
  device.capability = {profile.unit, profile.capability, {std::string(profile.capability_name)}};
  device.compute_units = profile.compute_units;
  device.memory_space = fmt::format("{}:0", profile.platform);
  device.memory_bytes = profile.memory_bytes;
  device.free_bytes = profile.free_bytes;
  return device;
}

DeviceInfo Host(const HostProfile& host, std::string_view platform) {
  DeviceInfo device;
  device.platform = platform;
  device.product = host.cpu;
  device.capability = {CapabilityUnit::kCpu, host.isa, IsaNames(host.isa)};
  device.memory_space = "host";
  device.memory_bytes = host.memory_bytes;
  device.free_bytes = host.memory_bytes / 16 * 15;
  device.threads = host.threads;
  device.numa_nodes = host.numa_nodes;
  device.l1d_bytes = host.l1d_bytes;
  device.l2_bytes = host.l2_bytes;
  device.l3_bytes = host.l3_bytes;
  return device;
}

Platform Expand(const Profile& profile) {
  Platform platform;
  platform.name = profile.name;
  std::vector<std::string_view> names = {"cuda", "hip", "cpu", "reference"};
  if (profile.platform == "xpu") names.insert(names.begin(), "xpu");
  for (std::string_view name : names) {
    const bool host = name == "cpu" || name == "reference";
    const bool found = host || profile.platform == name;
    platform.probes.push_back({.platform = std::string(name),
                               .outcome = found ? ProbeOutcome::kFound : ProbeOutcome::kAbsent,
                               .detail = fmt::format("profile {}", profile.name),
                               .next = {}});
    if (!found) continue;
    platform.devices.push_back(host ? Host(*profile.host, name) : Accelerator(profile));
    for (const AttentionRow& row : KnownRows()) {
      if (row.platform == name) platform.rows.push_back(row);
    }
  }
  return platform;
}

bool IsNamed(const Profile& profile, std::string_view name) {
  return !name.empty() &&
         (profile.name == name ||
          std::find(profile.aliases.begin(), profile.aliases.end(), name) != profile.aliases.end());
}

// Of all names, aliases too: what somebody nearly wrote.
std::string NearestName(const std::string& word) {
  std::vector<std::string> names;
  for (const Profile& profile : kProfiles) {
    names.emplace_back(profile.name);
    for (std::string_view alias : profile.aliases) {
      if (!alias.empty()) names.emplace_back(alias);
    }
  }
  return Nearest(word, names);
}

}  // namespace

std::optional<Platform> FindProfile(std::string_view name) {
  for (const Profile& profile : kProfiles) {
    if (IsNamed(profile, name)) return Expand(profile);
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
    std::string nearest = NearestName(file_or_name);
    Problems problems = text.problems();
    problems.push_back({file_or_name, "no profile of that name", OneOf(PlatformProfiles()),
                        nearest.empty() ? "name a profile, or a file of ashlar probe --capture"
                                        : fmt::format("did you mean {}?", nearest)});
    return problems;
  }
  Result<Json> json = ParseJson(*text, file_or_name);
  if (!json.ok()) return json.problems();
  return PlatformFromJson(*json, file_or_name);
}

}  // namespace ashlar
