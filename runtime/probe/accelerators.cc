#include "probe/accelerators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ashlar {

Accelerators WithoutDevices(std::string platform, ProbeOutcome outcome, std::string detail,
                            std::string next) {
  return {.probe = {.platform = std::move(platform),
                    .outcome = outcome,
                    .detail = std::move(detail),
                    .next = std::move(next)},
          .devices = {}};
}

int CountPciAccelerators(const RootFiles& files, std::string_view vendor) {
  int count = 0;
  for (const std::string& device : files.List("/sys/bus/pci/devices")) {
    std::string at = "/sys/bus/pci/devices/" + device;
    if (files.ReadWord(at + "/vendor") != vendor) continue;
    std::string type = files.ReadWord(at + "/class").value_or("");
    if (type.starts_with("0x03") || type.starts_with("0x12")) ++count;
  }
  return count;
}

DeviceFileCheck CheckDeviceFiles(const RootFiles& files, const std::vector<std::string>& paths) {
  DeviceFileCheck check;
  std::vector<std::string> refused;
  for (const std::string& path : paths) {
    int error = files.OpenError(path);
    if (error == 0) continue;
    refused.push_back(path + ": " + (error == ENOENT ? "missing" : std::strerror(error)));
    if (error == ENOENT || error == EACCES || error == EPERM) check.denied = true;
  }
  check.refused = FirstOf(refused);
  return check;
}

std::string FirstOf(const std::vector<std::string>& parts) {
  constexpr size_t kShown = 4;
  std::string text;
  for (size_t i = 0; i < std::min(parts.size(), kShown); ++i) {
    if (i > 0) text += ", ";
    text += parts[i];
  }
  if (parts.size() > kShown) text += fmt::format(" and {} more", parts.size() - kShown);
  return text;
}

}  // namespace ashlar
