// The host as a device: what of it this process may really use.
#pragma once

#include <string>

#include "probe/platform.h"
#include "probe/root_files.h"

namespace ashlar {

// Threads are the least of affinity, cpuset and quota; memory the least of what is installed and
// every cgroup limit. `platform` is "cpu" or "reference".
DeviceInfo ReadHostDevice(const RootFiles& files, const std::string& platform);

}  // namespace ashlar
