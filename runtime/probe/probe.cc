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
      .detail = PlainText({answer.detail, strnlen(answer.detail, sizeof answer.detail)}),
      .next = {}};
  if (!known) probe.detail = fmt::format("{} answered outcome {}", plugin.path(), answer.outcome);
  if (probe.outcome != ProbeOutcome::kFound && probe.outcome != ProbeOutcome::kAbsent)
    probe.next = "mend what the plugin reports, then start again";
  return probe;
}

// The plugin has the last word on what hardware and driver offer. It is not asked about a device
// that the driver cannot use: it would hang or fail with it, in this process. Without a plugin the
// devices are still facts, which a person or another machine may want to see.
Accelerators Combine(Accelerators seen, const PluginScan& scan, const std::string& directory) {
  if (seen.probe.outcome != ProbeOutcome::kFound) return seen;
  const Plugin* plugin = FindPlugin(scan, seen.probe.platform);
  PlatformProbe answer =
      plugin == nullptr ? NoPlugin(scan, seen.probe.platform, directory) : AskPlugin(*plugin);
  if (plugin != nullptr && answer.outcome != ProbeOutcome::kFound) seen.devices.clear();
  if (!seen.probe.detail.empty() && !answer.detail.empty()) seen.probe.detail += "; ";
  answer.detail = seen.probe.detail + answer.detail;
  seen.probe = std::move(answer);
  return seen;
}

// The processors with what this process may use of them; the plain loops use the same.
Accelerators HostOf(const RootFiles& files, const PluginScan& scan, const std::string& platform) {
  Accelerators host = {
      .probe = {.platform = platform, .outcome = ProbeOutcome::kFound, .detail = {}, .next = {}},
      .devices = {}};
  if (platform == "cpu" || FindPlugin(scan, platform) != nullptr)
    host.devices.push_back(ReadHostDevice(files, platform));
  return host;
}

}  // namespace

std::string_view Name(ProbeOutcome outcome) { return kOutcomeNames[static_cast<size_t>(outcome)]; }

Platform ProbePlatform(const ProbeOptions& options) {
  const RootFiles files(options.root);
  const std::string directory =
      options.plugin_directory.empty() ? DefaultPluginDirectory() : options.plugin_directory;
  const PluginScan scan = LoadPlugins(directory);

  Platform platform;
  platform.name = PlainText(files.ReadWord("/proc/sys/kernel/hostname").value_or(""));
  if (platform.name.empty()) platform.name = "this machine";
  for (Accelerators& seen :
       std::array{ProbeNvidia(files, options.libraries, options.driver_seconds),
                  ProbeAmd(files, options.libraries, options.driver_seconds),
                  HostOf(files, scan, "cpu"), HostOf(files, scan, "reference")}) {
    Accelerators combined = Combine(std::move(seen), scan, directory);
    platform.probes.push_back(std::move(combined.probe));
    platform.devices.insert(platform.devices.end(), combined.devices.begin(),
                            combined.devices.end());
  }
  for (const Plugin* plugin : scan.plugins) {
    platform.rows.insert(platform.rows.end(), plugin->rows().begin(), plugin->rows().end());
  }
  return platform;
}

}  // namespace ashlar
