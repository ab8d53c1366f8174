// Which instruction sets this CPU and its operating system offer, and the kernels for them.
#pragma once

#include <stdint.h>

#include "kernels.h"

namespace ashlar::cpu {

// In rising order; each needs all that the one before it of its kind needs.
enum class CpuLevel : int32_t {
  kPortable = 0,
  kAvx2,        // AVX2, FMA, F16C
  kAvx2Vnni,    // and AVX-VNNI
  kAvx512,      // AVX-512 F, BW, DQ, VL
  kAvx512Vnni,  // and AVX512_VNNI
  kAvx512Bf16,  // and AVX512_BF16
  kAmx,         // and AMX_TILE, AMX_INT8, AMX_BF16, granted by the operating system
};
constexpr int kCpuLevelCount = 7;

// What decides, as CPUID and the operating system say it.
struct CpuWords {
  uint32_t one_c = 0, seven_b = 0, seven_c = 0, seven_d = 0, seven_one_a = 0;
  uint64_t saved_states = 0;  // XCR0: registers that survive a switch of threads
  bool tiles_granted = false;
};
struct CpuLevels {
  bool supported[kCpuLevelCount] = {};
  CpuLevel best = CpuLevel::kPortable;
};
CpuLevels LevelsOf(const CpuWords& words);

bool Supported(CpuLevel level);                 // by this build, CPU and operating system
CpuLevel BestLevel();                           // the highest supported
const KernelTable& KernelsFor(CpuLevel level);  // must be supported

// Defined one in each level's source.
extern const KernelTable kPortableKernels, kAvx2Kernels, kAvx2VnniKernels, kAvx512Kernels,
    kAvx512VnniKernels, kAvx512Bf16Kernels, kAmxKernels;

}  // namespace ashlar::cpu
