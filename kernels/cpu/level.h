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
};
constexpr int kCpuLevelCount = 6;

bool Supported(CpuLevel level);                 // by this build, CPU and operating system
CpuLevel BestLevel();                           // the highest supported
const KernelTable& KernelsFor(CpuLevel level);  // must be supported

// Defined one in each level's source.
extern const KernelTable kPortableKernels, kAvx2Kernels, kAvx2VnniKernels, kAvx512Kernels,
    kAvx512VnniKernels, kAvx512Bf16Kernels;

}  // namespace ashlar::cpu
