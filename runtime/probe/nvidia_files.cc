#include <fmt/format.h>

#include <algorithm>

#include "probe/accelerators.h"
#include "probe/child.h"
#include "probe/nvidia_driver.h"

namespace ashlar {
namespace {

constexpr std::string_view kVendor = "0x10de";

bool IsDigits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  ..." -> "580.65.06".
std::string DriverVersion(std::string_view text) {
  for (std::string_view word : Words(text)) {
    size_t dot = word.find('.');
    if (dot != word.npos && IsDigits(word.substr(0, dot)) && IsDigits(word.substr(dot + 1, 1)))
      return std::string(word.substr(0, 32));
  }
  return "of unknown version";
}

std::vector<std::string> DeviceNodes(const RootFiles& files) {
  std::vector<std::string> nodes;
  for (const std::string& name : files.List("/dev")) {
    if (name.starts_with("nvidia") && IsDigits(name.substr(6))) nodes.push_back("/dev/" + name);
  }
  return nodes;
}

}  // namespace

PlatformProbe ProbeNvidiaFiles(const RootFiles& files) {
  const int on_bus = CountPciAccelerators(files, kVendor);
  const std::optional<std::string> driver = files.Read("/proc/driver/nvidia/version");
  const size_t known = files.List("/proc/driver/nvidia/gpus").size();
  std::vector<std::string> nodes = DeviceNodes(files);
  PlatformProbe probe{
      .platform = "cuda", .outcome = ProbeOutcome::kAbsent, .detail = {}, .next = {}};

  if (files.Exists("/dev/dxg") && !driver) {  // WSL: the driver is the host's
    probe.outcome = ProbeOutcome::kFound;
    probe.detail = "/dev/dxg of WSL";
    return probe;
  }
  if (on_bus == 0 && known == 0 && nodes.empty()) {
    probe.detail = driver ? "the NVIDIA driver is loaded, but no device is on the PCI bus"
                          : "no NVIDIA device on the PCI bus, no /dev/nvidia*";
    return probe;
  }
  if (!driver) {
    probe.outcome = ProbeOutcome::kNoDriver;
    probe.detail = fmt::format(
        "{} NVIDIA devices on the PCI bus, {} device files, but no /proc/driver/nvidia/version",
        on_bus, nodes.size());
    probe.next = "install the NVIDIA driver on the node and load its kernel module";
    return probe;
  }
  std::string version = DriverVersion(*driver);
  if (known == 0) {
    probe.outcome = ProbeOutcome::kBroken;
    probe.detail = fmt::format("driver {} is loaded and knows no GPU", version);
    probe.next = "look for NVRM and Xid lines in the node's kernel log; reset or replace the GPU";
    return probe;
  }
  if (nodes.empty()) nodes.push_back("/dev/nvidia0");
  nodes.insert(nodes.begin(), {"/dev/nvidiactl", "/dev/nvidia-uvm"});
  DeviceFileCheck check = CheckDeviceFiles(files, nodes);
  if (check.refused.empty()) {
    probe.outcome = ProbeOutcome::kFound;
    probe.detail = fmt::format("driver {}, {} device files", version, nodes.size());
    return probe;
  }
  probe.outcome = check.denied ? ProbeOutcome::kNoAccess : ProbeOutcome::kBroken;
  probe.detail = fmt::format("driver {} knows {} GPUs, but {}", version, known, check.refused);
  probe.next = check.denied ? "ask for nvidia.com/gpu in the pod, or run the container with --gpus"
                            : "look for NVRM and Xid lines in the node's kernel log";
  return probe;
}

Accelerators ProbeNvidia(const RootFiles& files, const VendorLibraries& libraries, int seconds) {
  PlatformProbe evidence = ProbeNvidiaFiles(files);
  if (evidence.outcome == ProbeOutcome::kAbsent) return {.probe = evidence, .devices = {}};
  // Some containers show the devices but not the driver's files, so the driver is asked even where
  // files speak against it.
  Accelerators driver = AskInChild("cuda", std::chrono::seconds(seconds),
                                   [&] { return AskNvidiaDriver(files, libraries); });
  if (driver.probe.outcome == ProbeOutcome::kFound) return driver;
  const std::string both = fmt::format("{}; {}", evidence.detail, driver.probe.detail);
  PlatformProbe& tells_more = evidence.outcome == ProbeOutcome::kFound ? driver.probe : evidence;
  tells_more.detail = both;
  return {.probe = std::move(tells_more), .devices = {}};
}

}  // namespace ashlar
