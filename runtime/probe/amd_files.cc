#include <fmt/format.h>

#include <algorithm>

#include "probe/accelerators.h"
#include "probe/child.h"
#include "probe/hip_runtime.h"
#include "probe/kfd.h"

namespace ashlar {
namespace {

constexpr const char* kPlatform = "hip";
constexpr std::string_view kVendor = "0x1002";
constexpr const char* kKernelLog = "look for amdgpu and kfd lines in the node's kernel log";

// "8 x gfx942", "1 x gfx90a, 1 x gfx1030".
std::string Names(const std::vector<KfdGpu>& gpus) {
  std::vector<std::pair<std::string, int>> counts;
  for (const KfdGpu& gpu : gpus) {
    std::string name = gpu.capability ? gpu.capability->names.front() : "unnamed GPU";
    auto found = std::find_if(counts.begin(), counts.end(),
                              [&](const auto& count) { return count.first == name; });
    if (found == counts.end())
      counts.emplace_back(std::move(name), 1);
    else
      ++found->second;
  }
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts) parts.push_back(fmt::format("{} x {}", count, name));
  return FirstOf(parts);
}

std::string DriverVersion(const RootFiles& files) {
  std::string version = files.ReadWord("/sys/module/amdgpu/version").value_or("");
  if (!version.empty()) return PlainText(version);
  return PlainText("Linux " + files.ReadWord("/proc/sys/kernel/osrelease").value_or("?"));
}

DeviceInfo Device(const KfdGpu& gpu, int index, const std::string& driver) {
  DeviceInfo device;
  device.platform = kPlatform;
  device.index = index;
  device.product = gpu.product;
  device.capability = *gpu.capability;
  device.id = gpu.pci;
  device.driver = driver;
  device.partition = gpu.partition;
  device.link = gpu.link;
  device.compute_units = gpu.compute_units;
  device.memory_space = fmt::format("hip:{}", index);
  device.memory_bytes = gpu.memory_bytes;
  device.free_bytes = gpu.memory_bytes - std::min(gpu.used_bytes.value_or(0), gpu.memory_bytes);
  return device;
}

// What is known of the card that forbids to plan on it, or "".
std::string Unusable(const RootFiles& files, const KfdGpu& gpu) {
  if (!gpu.capability) return "neither gfx_target_version nor device_id names its instruction set";
  if (gpu.memory_bytes == 0) return "the size of its memory is not stated";
  return gpu.pci.empty() ? "" : AmdFault(files, gpu.pci);
}

// Outcomes that the absence of something explains.
std::optional<Accelerators> Missing(const RootFiles& files, const KfdTopology& topology) {
  const int on_bus = CountPciAccelerators(files, kVendor);
  // A server with AMD processors alone has a topology too, with nodes that are no GPU.
  if (on_bus == 0 && topology.gpus.empty())
    return WithoutDevices(kPlatform, ProbeOutcome::kAbsent,
                          "no AMD GPU on the PCI bus or in the KFD topology", "");
  if (!topology.present) {
    const bool loaded = files.Exists("/sys/module/amdgpu");
    return WithoutDevices(
        kPlatform, ProbeOutcome::kNoDriver,
        fmt::format("{} AMD GPUs on the PCI bus, {}but no {}", on_bus,
                    loaded ? "amdgpu is loaded, " : "", kKfdNodes),
        loaded ? "run a kernel with CONFIG_HSA_AMD, or AMD's amdgpu-dkms, on the node"
               : "load the amdgpu kernel module on the node");
  }
  if (topology.gpus.empty() && topology.hidden > 0) {
    return WithoutDevices(
        kPlatform, ProbeOutcome::kNoAccess,
        fmt::format("{} KFD nodes may not be read", topology.hidden),
        "ask for amd.com/gpu in the pod, or pass /dev/kfd and /dev/dri to the container");
  }
  if (topology.gpus.empty()) {
    return WithoutDevices(
        kPlatform, ProbeOutcome::kBroken,
        fmt::format("{} AMD GPUs on the PCI bus, but the KFD topology has none", on_bus),
        fmt::format("{}; KFD may not support this GPU", kKernelLog));
  }
  return std::nullopt;
}

// A container gets the render nodes of its own GPUs only; the topology shows those of all.
struct Access {
  std::vector<KfdGpu> open;
  DeviceFileCheck refused;  // of the last that is not open
};
Access CheckRenderNodes(const RootFiles& files, const std::vector<KfdGpu>& gpus) {
  Access access;
  for (const KfdGpu& gpu : gpus) {
    DeviceFileCheck check =
        CheckDeviceFiles(files, {fmt::format("/dev/dri/renderD{}", gpu.render_minor)});
    if (check.refused.empty())
      access.open.push_back(gpu);
    else
      access.refused = std::move(check);
  }
  return access;
}

Accelerators NotOpen(const DeviceFileCheck& kfd, const DeviceFileCheck& render,
                     const std::string& names) {
  std::string refused = kfd.refused;
  if (!refused.empty() && !render.refused.empty()) refused += ", ";
  refused += render.refused;
  const bool denied = kfd.denied || render.denied;
  return WithoutDevices(
      kPlatform, denied ? ProbeOutcome::kNoAccess : ProbeOutcome::kBroken,
      fmt::format("{}, but {}", names, refused),
      denied ? "ask for amd.com/gpu in the pod, or pass /dev/kfd and /dev/dri to the container and "
               "add the groups render and video"
             : kKernelLog);
}

// A device keeps its number when one before it is left out: the runtime counts that one too.
Accelerators ListDevices(const RootFiles& files, const std::vector<KfdGpu>& gpus) {
  const std::string driver = DriverVersion(files);
  Accelerators found = WithoutDevices(kPlatform, ProbeOutcome::kFound, Names(gpus), "");
  std::vector<std::string> unusable;
  for (size_t i = 0; i < gpus.size(); ++i) {
    const KfdGpu& gpu = gpus[i];
    if (std::string why = Unusable(files, gpu); !why.empty())
      unusable.push_back(
          fmt::format("KFD node {} ({}, {}): {}", gpu.node, gpu.product, gpu.pci, why));
    else
      found.devices.push_back(Device(gpu, static_cast<int>(i), driver));
  }
  if (!unusable.empty()) found.probe.detail += "; not used: " + FirstOf(unusable);
  if (found.devices.empty()) {
    found.probe.outcome = ProbeOutcome::kBroken;
    found.probe.next = fmt::format("{}; reset or replace the GPU", kKernelLog);
  }
  return found;
}

}  // namespace

Accelerators ProbeAmdFiles(const RootFiles& files) {
  const KfdTopology topology = ReadKfdTopology(files);
  if (std::optional<Accelerators> missing = Missing(files, topology)) return *std::move(missing);
  const DeviceFileCheck kfd = CheckDeviceFiles(files, {"/dev/kfd"});
  const Access render = CheckRenderNodes(files, topology.gpus);
  if (render.open.empty()) return NotOpen(kfd, render.refused, Names(topology.gpus));
  if (!kfd.refused.empty()) return NotOpen(kfd, {}, Names(topology.gpus));
  return ListDevices(files, render.open);
}

Accelerators ProbeAmd(const RootFiles& files, const VendorLibraries& libraries, int seconds) {
  Accelerators seen = ProbeAmdFiles(files);
  if (seen.probe.outcome != ProbeOutcome::kFound) return seen;
  Accelerators runtime = AskInChild("hip", std::chrono::seconds(seconds),
                                    [&] { return AskHipRuntime(libraries.hip, seen); });
  if (runtime.probe.outcome == ProbeOutcome::kFound) return runtime;
  // Without a runtime the devices are still there for another image of this node.
  if (runtime.probe.outcome == ProbeOutcome::kNoDriver) runtime.devices = std::move(seen.devices);
  runtime.probe.detail = fmt::format("{}; {}", seen.probe.detail, runtime.probe.detail);
  return runtime;
}

}  // namespace ashlar
