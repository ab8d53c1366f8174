#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "device/device.h"
#include "probe/accelerators.h"
#include "probe/host_device.h"
#include "probe/platform.h"
#include "probe/root_files.h"

namespace ashlar {
namespace {

constexpr std::array<std::string_view, 5> kOutcomeNames = {"found", "absent", "noDriver",
                                                           "noAccess", "broken"};

const Plugin* FindPlugin(const PluginScan& scan, std::string_view name) {
  for (const Plugin* plugin : scan.plugins) {
    if (plugin->name() == name) return plugin;
  }
  return nullptr;
}

PlatformProbe NoPlugin(const PluginScan& scan, const std::string& name,
                       const std::string& directory) {
  const std::string file = fmt::format("libashlar_{}.so", name);
  for (const Problem& problem : scan.refused) {
    if (problem.place.find(file) == std::string::npos) continue;
    return {.platform = name,
            .outcome = ProbeOutcome::kBroken,
            .detail = fmt::format("{}: {}", problem.place, problem.found),
            .next = problem.next};
  }
  return {.platform = name,
          .outcome = ProbeOutcome::kNoDriver,
          .detail = fmt::format("no plugin {} in {}", file, directory),
          .next = fmt::format("install {} there; it comes with ashlar's packages", file)};
}

PlatformProbe AskPlugin(const Plugin& plugin) {
  ashlar_probe answer = plugin.Probe();
  const bool known = answer.outcome >= 0 && answer.outcome < int{kOutcomeNames.size()};
  PlatformProbe probe{
      .platform = plugin.name(),
      .outcome = known ? static_cast<ProbeOutcome>(answer.outcome) : ProbeOutcome::kBroken,
      .detail = std::string(answer.detail, strnlen(answer.detail, sizeof answer.detail)),
      .next = {}};
  if (!known) probe.detail = fmt::format("{} answered outcome {}", plugin.path(), answer.outcome);
  if (probe.outcome != ProbeOutcome::kFound && probe.outcome != ProbeOutcome::kAbsent)
    probe.next = "mend what the plugin reports, then start again";
  return probe;
}

// What the plugin answers, if there is one; files explain better why there is nothing to use.
PlatformProbe Combine(const PlatformProbe& files, const PluginScan& scan,
                      const std::string& directory) {
  const Plugin* plugin = FindPlugin(scan, files.platform);
  if (plugin == nullptr && files.outcome != ProbeOutcome::kFound) return files;
  PlatformProbe probe =
      plugin == nullptr ? NoPlugin(scan, files.platform, directory) : AskPlugin(*plugin);
  if (probe.outcome == ProbeOutcome::kFound) return probe;
  if (files.outcome != ProbeOutcome::kFound) return files;
  if (!files.detail.empty()) probe.detail = fmt::format("{}; {}", files.detail, probe.detail);
  return probe;
}

}  // namespace

std::string_view Name(ProbeOutcome outcome) { return kOutcomeNames[static_cast<size_t>(outcome)]; }

Platform ProbePlatform(const ProbeOptions& options) {
  const RootFiles files(options.root);
  const std::string directory =
      options.plugin_directory.empty() ? DefaultPluginDirectory() : options.plugin_directory;
  const PluginScan scan = LoadPlugins(directory);
  auto host = [](const char* platform) {
    return PlatformProbe{
        .platform = platform, .outcome = ProbeOutcome::kFound, .detail = {}, .next = {}};
  };

  Platform platform;
  platform.name = files.ReadWord("/proc/sys/kernel/hostname").value_or("");
  if (platform.name.empty()) platform.name = "this machine";
  for (const PlatformProbe& seen :
       {ProbeNvidiaFiles(files), ProbeAmdFiles(files), host("cpu"), host("reference")}) {
    platform.probes.push_back(Combine(seen, scan, directory));
  }
  platform.devices.push_back(ReadHostDevice(files, "cpu"));
  if (FindPlugin(scan, "reference") != nullptr) {
    platform.devices.push_back(platform.devices.front());
    platform.devices.back().platform = "reference";
  }
  for (const Plugin* plugin : scan.plugins) {
    platform.rows.insert(platform.rows.end(), plugin->rows().begin(), plugin->rows().end());
  }
  return platform;
}

}  // namespace ashlar
