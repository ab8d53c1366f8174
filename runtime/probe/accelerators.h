// GPUs as device files, the kernel's topology and the vendors' drivers show them. A platform that
// is found has at least one device; whether our kernels run on it is the plugin's to say.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "probe/platform.h"
#include "probe/root_files.h"

namespace ashlar {

struct Accelerators {
  PlatformProbe probe;
  std::vector<DeviceInfo> devices;  // those that are well; where nothing answers for them, what
                                    // files show
};

// An outcome that has no devices, or none yet.
Accelerators WithoutDevices(std::string platform, ProbeOutcome outcome, std::string detail,
                            std::string next);

// Files first, and only where they show anything, the driver: a machine without GPUs pays nothing.
// The driver is asked in a child process and given `seconds`.
Accelerators ProbeNvidia(const RootFiles& files, const VendorLibraries& libraries, int seconds);
Accelerators ProbeAmd(const RootFiles& files, const VendorLibraries& libraries, int seconds);

// The outcome as far as files alone tell; no vendor library is loaded.
PlatformProbe ProbeNvidiaFiles(const RootFiles& files);
Accelerators ProbeAmdFiles(const RootFiles& files);

// Devices on the PCI bus with this vendor ("0x10de") whose class is a display controller or a
// processing accelerator.
int CountPciAccelerators(const RootFiles& files, std::string_view vendor);

// What keeps the device files from being used, in the order given.
struct DeviceFileCheck {
  std::string refused;  // "/dev/kfd: Permission denied, ..."; empty: all open
  bool denied = false;  // missing or not permitted, so not injected; else the device itself fails
};
DeviceFileCheck CheckDeviceFiles(const RootFiles& files, const std::vector<std::string>& paths);

// The first few of `parts`, and how many follow: "a, b and 6 more".
std::string FirstOf(const std::vector<std::string>& parts);

}  // namespace ashlar
