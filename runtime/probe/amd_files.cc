#include <fmt/format.h>

#include <algorithm>

#include "probe/accelerators.h"

namespace ashlar {
namespace {

constexpr std::string_view kVendor = "0x1002";
constexpr const char* kNodes = "/sys/class/kfd/kfd/topology/nodes";

// A GPU, or a partition of one, in the topology of the kernel fusion driver.
struct KfdGpu {
  std::string name;  // "gfx942"
  int64_t render_minor = 0;
};

struct KfdTopology {
  bool present = false;
  int hidden = 0;  // nodes whose properties may not be read: the device cgroup forbids the GPU
  std::vector<KfdGpu> gpus;
};

int64_t Property(std::string_view properties, std::string_view key) {
  for (std::string_view line : Lines(properties)) {
    std::vector<std::string_view> words = Words(line);
    if (words.size() == 2 && words[0] == key) return ParseNumber(words[1]).value_or(0);
  }
  return 0;
}

// 90402 -> "gfx942", 90010 -> "gfx90a": major * 10000 + minor * 100 + stepping, stepping in hex.
std::string GfxName(int64_t version) {
  if (version <= 0 || version >= 1'000'000) return "unnamed GPU";
  return fmt::format("gfx{}{}{:x}", version / 10'000, version / 100 % 100, version % 100);
}

KfdTopology ReadTopology(const RootFiles& files) {
  KfdTopology topology;
  topology.present = files.Exists(kNodes);
  for (const std::string& node : files.List(kNodes)) {
    std::optional<std::string> properties =
        files.Read(fmt::format("{}/{}/properties", kNodes, node));
    if (!properties || Trim(*properties).empty()) {
      ++topology.hidden;
    } else if (Property(*properties, "simd_count") > 0) {
      topology.gpus.push_back({GfxName(Property(*properties, "gfx_target_version")),
                               Property(*properties, "drm_render_minor")});
    }
  }
  return topology;
}

PlatformProbe Outcome(ProbeOutcome outcome, std::string detail, std::string next) {
  return {
      .platform = "hip", .outcome = outcome, .detail = std::move(detail), .next = std::move(next)};
}

// "8 x gfx942", "1 x gfx90a, 1 x gfx1030".
std::string Names(const std::vector<KfdGpu>& gpus) {
  std::vector<std::string> seen;
  std::string text;
  for (const KfdGpu& gpu : gpus) {
    if (std::find(seen.begin(), seen.end(), gpu.name) != seen.end()) continue;
    seen.push_back(gpu.name);
    auto count = std::count_if(gpus.begin(), gpus.end(),
                               [&](const KfdGpu& other) { return other.name == gpu.name; });
    text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", count, gpu.name);
  }
  return text;
}

}  // namespace

PlatformProbe ProbeAmdFiles(const RootFiles& files) {
  const int on_bus = CountPciAccelerators(files, kVendor);
  const KfdTopology topology = ReadTopology(files);
  // A server with AMD processors alone has a topology too, with nodes that are no GPU.
  if (on_bus == 0 && topology.gpus.empty())
    return Outcome(ProbeOutcome::kAbsent, "no AMD GPU on the PCI bus or in the KFD topology", "");
  if (!topology.present) {
    return Outcome(ProbeOutcome::kNoDriver,
                   fmt::format("{} AMD GPUs on the PCI bus, but no {}", on_bus, kNodes),
                   "load the amdgpu kernel module on the node");
  }
  if (topology.gpus.empty() && topology.hidden > 0) {
    return Outcome(
        ProbeOutcome::kNoAccess, fmt::format("{} KFD nodes may not be read", topology.hidden),
        "ask for amd.com/gpu in the pod, or pass /dev/kfd and /dev/dri to the container");
  }
  if (topology.gpus.empty()) {
    return Outcome(ProbeOutcome::kBroken,
                   fmt::format("{} AMD GPUs on the PCI bus, but the KFD topology has none", on_bus),
                   "look for amdgpu and kfd lines in the node's kernel log; KFD may not support "
                   "this GPU");
  }
  DeviceFileCheck kfd = CheckDeviceFiles(files, {"/dev/kfd"});
  // One usable render node is enough: containers get the nodes of their own GPUs only.
  DeviceFileCheck render;
  for (const KfdGpu& gpu : topology.gpus) {
    render = CheckDeviceFiles(files, {fmt::format("/dev/dri/renderD{}", gpu.render_minor)});
    if (render.refused.empty()) break;
  }
  if (kfd.refused.empty() && render.refused.empty())
    return Outcome(ProbeOutcome::kFound, Names(topology.gpus), "");
  std::string refused = kfd.refused;
  if (!refused.empty() && !render.refused.empty()) refused += ", ";
  refused += render.refused;
  const bool denied = kfd.denied || render.denied;
  return Outcome(denied ? ProbeOutcome::kNoAccess : ProbeOutcome::kBroken,
                 fmt::format("{}, but {}", Names(topology.gpus), refused),
                 denied ? "ask for amd.com/gpu in the pod, or pass /dev/kfd and /dev/dri to the "
                          "container and add the groups render and video"
                        : "look for amdgpu and kfd lines in the node's kernel log");
}

}  // namespace ashlar
