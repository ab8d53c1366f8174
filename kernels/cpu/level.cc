#include "level.h"

#include <stdlib.h>

#ifdef ASHLAR_CPU_X86
#include <cpuid.h>
#endif

namespace ashlar::cpu {
namespace {

#ifdef ASHLAR_CPU_X86

struct Cpuid {
  uint32_t a = 0, b = 0, c = 0, d = 0;
};
Cpuid Leaf(uint32_t leaf, uint32_t subleaf) {
  Cpuid r;
  if (!__get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d)) r = {};
  return r;
}
bool Has(uint32_t word, int bit) { return (word >> bit) & 1u; }

// The register states that the operating system saves; instructions of others must not be used.
uint64_t SavedStates() {
  if (!Has(Leaf(1, 0).c, 27)) return 0;  // OSXSAVE
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

CpuLevel Detect(bool supported[kCpuLevelCount]) {
  const Cpuid one = Leaf(1, 0), seven = Leaf(7, 0), seven_one = Leaf(7, 1);
  const uint64_t saved = SavedStates();
  const bool ymm = (saved & 0x6) == 0x6, zmm = (saved & 0xe6) == 0xe6;
  auto set = [&](CpuLevel level, bool yes) { supported[(int)level] = yes; };
  const bool avx2 = ymm && Has(one.c, 28) && Has(one.c, 12) && Has(one.c, 29) && Has(seven.b, 5);
  const bool avx512 =
      avx2 && zmm && Has(seven.b, 16) && Has(seven.b, 17) && Has(seven.b, 30) && Has(seven.b, 31);
  const bool vnni = avx512 && Has(seven.c, 11);
  set(CpuLevel::kPortable, true);
  set(CpuLevel::kAvx2, avx2);
  set(CpuLevel::kAvx2Vnni, avx2 && Has(seven_one.a, 4));
  set(CpuLevel::kAvx512, avx512);
  set(CpuLevel::kAvx512Vnni, vnni);
  set(CpuLevel::kAvx512Bf16, vnni && Has(seven_one.a, 5));
  CpuLevel best = CpuLevel::kPortable;
  for (int i = 0; i < kCpuLevelCount; ++i)
    if (supported[i]) best = (CpuLevel)i;
  // 256-bit VNNI beats AVX-512 without it.
  if (best == CpuLevel::kAvx512 && supported[(int)CpuLevel::kAvx2Vnni]) best = CpuLevel::kAvx2Vnni;
  return best;
}

#else

CpuLevel Detect(bool supported[kCpuLevelCount]) {
  for (int i = 0; i < kCpuLevelCount; ++i) supported[i] = i == 0;
  return CpuLevel::kPortable;
}

#endif

}  // namespace

bool Supported(CpuLevel level) {
  bool supported[kCpuLevelCount];
  Detect(supported);
  return supported[(int)level];
}

CpuLevel BestLevel() {
  bool supported[kCpuLevelCount];
  return Detect(supported);
}

const KernelTable& KernelsFor(CpuLevel level) {
  if (!Supported(level)) abort();
  switch (level) {
#ifdef ASHLAR_CPU_X86
    case CpuLevel::kAvx2:
      return kAvx2Kernels;
    case CpuLevel::kAvx2Vnni:
      return kAvx2VnniKernels;
    case CpuLevel::kAvx512:
      return kAvx512Kernels;
    case CpuLevel::kAvx512Vnni:
      return kAvx512VnniKernels;
    case CpuLevel::kAvx512Bf16:
      return kAvx512Bf16Kernels;
#endif
    default:
      return kPortableKernels;
  }
}

}  // namespace ashlar::cpu
