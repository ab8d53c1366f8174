// Devices and outcomes as JSON: parts of a captured platform, and what a probe's child process
// answers.
#pragma once

#include <string>

#include "base/json.h"
#include "probe/platform.h"

namespace ashlar {

inline constexpr int kMaxDevices = 4096;  // of one platform

Json ToJson(const PlatformProbe& probe);
Json ToJson(const DeviceInfo& device);

// Strict: each mistake is added to `problems` with `place` and the key before it.
PlatformProbe ReadProbe(const Json& json, const std::string& place, Problems& problems);
DeviceInfo ReadDevice(const Json& json, const std::string& place, Problems& problems);

}  // namespace ashlar
