#include "plan/device_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/bytes.h"
#include "base/nearest.h"

namespace ashlar {
namespace {

// Best first. A platform's rows may run on the devices of those listed beside it: they share
// memory.
struct PlatformRule {
  std::string_view name;
  bool host;                     // computes in float32 in host memory
  std::string_view last_resort;  // whose rows may stand in, after its own
  bool catalogue_only = false;   // no plugin of ours: other engines run there
};
constexpr std::array<PlatformRule, 5> kPlatforms = {{
    {"cuda", false, ""},
    {"hip", false, ""},
    {"xpu", false, "", true},
    {"cpu", true, "reference"},
    {"reference", true, ""},
}};

const PlatformRule* FindPlatform(std::string_view name) {
  for (const PlatformRule& rule : kPlatforms) {
    if (rule.name == name) return &rule;
  }
  return nullptr;
}

bool HasRows(const Platform& platform, std::string_view name) {
  return std::any_of(platform.rows.begin(), platform.rows.end(),
                     [&](const AttentionRow& row) { return row.platform == name; });
}

std::string ProbeText(const PlatformProbe& probe) {
  return probe.detail.empty() ? std::string(Name(probe.outcome))
                              : fmt::format("{}, {}", Name(probe.outcome), probe.detail);
}

std::vector<std::string> PresentPlatforms(const Platform& platform) {
  std::vector<std::string> names;
  for (const PlatformRule& rule : kPlatforms) {
    if (!rule.catalogue_only && DeviceOf(platform, rule.name) >= 0) names.emplace_back(rule.name);
  }
  return names;
}

// Why no row is for this platform's device, and what to do.
struct Lack {
  std::string why, next;
};
Lack LackOf(const Platform& platform, std::string_view name) {
  const PlatformProbe* probe = FindProbe(platform, name);
  Lack lack{"no plugin with attention backends", fmt::format("install libashlar_{}.so", name)};
  if (probe == nullptr || probe->outcome == ProbeOutcome::kFound) return lack;
  lack.why = ProbeText(*probe);
  if (!probe->next.empty()) lack.next = probe->next;
  return lack;
}

Problem NoPlugin(const Platform& platform, std::string_view name, const std::string& place) {
  Lack lack = LackOf(platform, name);
  return {place,
          fmt::format("{} has a device for {} but no attention backend", platform.name, name),
          lack.why, lack.next};
}

Problem CatalogueOnly(const Platform& platform, const DeviceInfo& device,
                      const std::string& place) {
  return {place,
          fmt::format("{} has a device ({}) that no plugin is for", platform.name, device.product),
          fmt::format("{} is known to the reference catalogue alone", device.platform),
          "add --catalogue vllm, or set platform to " + OneOf(PresentPlatforms(platform))};
}

Problem NoDevice(const Platform& platform, const std::string& asked, const std::string& place) {
  std::string seen, next;
  for (const PlatformProbe& probe : platform.probes) {
    if (asked != "auto" && probe.platform != asked) continue;
    if (!seen.empty()) seen += "; ";
    seen += fmt::format("{}: {}", probe.platform, ProbeText(probe));
    if (next.empty()) next = probe.next;
  }
  std::vector<std::string> present = PresentPlatforms(platform);
  if (next.empty() && !present.empty()) next = "set platform to " + OneOf(present);
  if (next.empty()) next = "plan with --platform and a profile, or run on a machine with a device";
  std::string wanted =
      asked == "auto" ? "no device of any platform" : fmt::format("no {} device", asked);
  return {place, fmt::format("{} on {}", wanted, platform.name),
          seen.empty() ? "this platform was not probed" : seen, next};
}

void NotePassedOver(DeviceChoice& choice, const Platform& platform, std::string_view name) {
  const PlatformProbe* probe = FindProbe(platform, name);
  bool nothing_there = probe == nullptr || probe->outcome == ProbeOutcome::kAbsent ||
                       probe->outcome == ProbeOutcome::kFound;
  if (DeviceOf(platform, name) < 0 && nothing_there) return;
  Lack lack = LackOf(platform, name);
  choice.notes.push_back(
      fmt::format("platform: {} is not used: {}; {}", name, lack.why, lack.next));
}

void NoteOtherDevices(DeviceChoice& choice, const Platform& platform) {
  std::vector<std::string> free;
  for (const DeviceInfo& device : platform.devices) {
    if (device.platform == choice.platform)
      free.push_back(fmt::format("{}: {}", device.index, FormatBytes(device.free_bytes)));
  }
  if (free.size() < 2) return;
  choice.notes.push_back(fmt::format("device {} of {} is used, it has the most free memory ({})",
                                     choice.target.device.index, choice.platform,
                                     fmt::join(free, ", ")));
}

void Take(DeviceChoice& choice, const Platform& platform, const PlatformRule& rule, int device) {
  choice.platform = rule.name;
  choice.device = device;
  choice.target.device = platform.devices[static_cast<size_t>(device)];
  choice.target.device.platform = rule.name;
  choice.target.platforms = {std::string(rule.name)};
  if (!rule.last_resort.empty()) choice.target.platforms.emplace_back(rule.last_resort);
  choice.target.present = PresentPlatforms(platform);
  NoteOtherDevices(choice, platform);
}

// The first device, whether or not a row is for it.
bool TakeAny(DeviceChoice& choice, const Platform& platform, const std::string& asked) {
  for (const PlatformRule& rule : kPlatforms) {
    int device = asked == "auto" || asked == rule.name ? DeviceOf(platform, rule.name) : -1;
    if (device < 0) continue;
    Take(choice, platform, rule, device);
    return true;
  }
  return false;
}

}  // namespace

// Index of the device with the most free memory, or -1. The reference plugin runs on the host,
// which may be listed as cpu only.
int DeviceOf(const Platform& platform, std::string_view name) {
  int best = -1;
  for (size_t i = 0; i < platform.devices.size(); ++i) {
    const DeviceInfo& device = platform.devices[i];
    if (device.platform != name) continue;
    if (best < 0 || device.free_bytes > platform.devices[static_cast<size_t>(best)].free_bytes)
      best = static_cast<int>(i);
  }
  if (best < 0 && name == "reference") return DeviceOf(platform, "cpu");
  return best;
}

const PlatformProbe* FindProbe(const Platform& platform, std::string_view name) {
  for (const PlatformProbe& probe : platform.probes) {
    if (probe.platform == name) return &probe;
  }
  return nullptr;
}

DeviceChoice ChooseDevice(const Platform& platform, const std::string& asked,
                          const std::string& place) {
  DeviceChoice choice;
  for (const PlatformRule& rule : kPlatforms) {
    if (asked != "auto" && asked != rule.name) continue;
    int device = DeviceOf(platform, rule.name);
    if (device >= 0 && rule.catalogue_only) {
      choice.problem =
          CatalogueOnly(platform, platform.devices[static_cast<size_t>(device)], place);
      return choice;
    }
    if (device >= 0 && HasRows(platform, rule.name)) {
      Take(choice, platform, rule, device);
      return choice;
    }
    if (device >= 0 && asked != "auto") {
      choice.problem = NoPlugin(platform, rule.name, place);
      return choice;
    }
    if (asked == "auto") NotePassedOver(choice, platform, rule.name);
  }
  // Without any plugin a device still explains what is missing.
  if (asked != "auto" || !TakeAny(choice, platform, asked))
    choice.problem = NoDevice(platform, asked, place);
  return choice;
}

DeviceChoice ChooseAnyDevice(const Platform& platform, const std::string& asked,
                             const std::string& place) {
  DeviceChoice choice;
  if (!TakeAny(choice, platform, asked)) choice.problem = NoDevice(platform, asked, place);
  return choice;
}

DType ActivationDType(const std::string& platform, DType weights) {
  const PlatformRule* rule = FindPlatform(platform);
  if (rule == nullptr || rule->host) return DType::kF32;
  return weights == DType::kF16 ? DType::kF16 : DType::kBF16;
}

DType AutomaticKvDType(const std::string& platform, DType weights) {
  if (platform == "reference") return DType::kF32;
  if (platform == "cpu") return weights == DType::kF32 ? DType::kF32 : DType::kBF16;
  return weights == DType::kF16 ? DType::kF16 : DType::kBF16;
}

}  // namespace ashlar
