// The kernels of the level amx over tiles in plain C++: they run on any CPU.
#pragma once

#include "kernels.h"

namespace ashlar::cpu {

extern const KernelTable kAmxEmulatedKernels;

}  // namespace ashlar::cpu
