// Stands in for level.cc in the plugin that the conformance test loads: its one level is emulated.
#include "emulated.h"
#include "level.h"

namespace ashlar::cpu {

bool Supported(CpuLevel level) { return level == CpuLevel::kAmx; }
CpuLevel BestLevel() { return CpuLevel::kAmx; }
const KernelTable& KernelsFor(CpuLevel) { return kAmxEmulatedKernels; }

}  // namespace ashlar::cpu
