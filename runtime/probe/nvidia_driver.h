// NVIDIA's devices as the driver library shows them to this process: it applies
// CUDA_VISIBLE_DEVICES and the container's choice itself, so its numbers are those that the plugin
// opens.
#pragma once

#include "probe/accelerators.h"

namespace ashlar {

// May hang or crash with the driver: call it through AskInChild.
Accelerators AskNvidiaDriver(const RootFiles& files, const VendorLibraries& libraries);

}  // namespace ashlar
