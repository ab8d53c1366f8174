// Evidence of accelerators in device files alone: no vendor library is loaded. kFound means that
// nothing speaks against it; whether it works is the plugin's to say.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "probe/platform.h"
#include "probe/root_files.h"

namespace ashlar {

PlatformProbe ProbeNvidiaFiles(const RootFiles& files);
PlatformProbe ProbeAmdFiles(const RootFiles& files);

// Devices on the PCI bus with this vendor ("0x10de") whose class is a display controller or a
// processing accelerator.
int CountPciAccelerators(const RootFiles& files, std::string_view vendor);

// What keeps the device files from being used, in the order given.
struct DeviceFileCheck {
  std::string refused;  // "/dev/kfd: Permission denied, ..."; empty: all open
  bool denied = false;  // missing or not permitted, so not injected; else the device itself fails
};
DeviceFileCheck CheckDeviceFiles(const RootFiles& files, const std::vector<std::string>& paths);

}  // namespace ashlar
