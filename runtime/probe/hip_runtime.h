// AMD's devices as the HIP runtime shows them to this process: it applies ROCR_VISIBLE_DEVICES and
// HIP_VISIBLE_DEVICES itself, so its numbers are those that the plugin opens.
#pragma once

#include "probe/accelerators.h"

namespace ashlar {

// Of `seen`, what files show, the devices that the runtime shows too, with the runtime's numbers.
// May hang or crash with the driver: call it through AskInChild.
Accelerators AskHipRuntime(const std::vector<std::string>& libraries, const Accelerators& seen);

}  // namespace ashlar
