#include "probe/accelerators.h"

#include <cerrno>
#include <cstring>

namespace ashlar {

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
  for (const std::string& path : paths) {
    int error = files.OpenError(path);
    if (error == 0) continue;
    if (!check.refused.empty()) check.refused += ", ";
    check.refused += path + ": " + (error == ENOENT ? "missing" : std::strerror(error));
    if (error == ENOENT || error == EACCES || error == EPERM) check.denied = true;
  }
  return check;
}

}  // namespace ashlar
