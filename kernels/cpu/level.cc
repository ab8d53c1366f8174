#include "level.h"

#include <stdlib.h>

#ifdef ASHLAR_CPU_X86
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace ashlar::cpu {
namespace {

bool Has(uint32_t word, int bit) { return (word >> bit) & 1u; }

#ifdef ASHLAR_CPU_X86

struct Cpuid {
  uint32_t a = 0, b = 0, c = 0, d = 0;
};
Cpuid Leaf(uint32_t leaf, uint32_t subleaf) {
  Cpuid r;
  if (!__get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d)) r = {};
  return r;
}

uint64_t SavedStates() {
  if (!Has(Leaf(1, 0).c, 27)) return 0;  // OSXSAVE
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

// Linux gives tile registers only to a process that asked for them; then to all its threads.
bool AskForTiles() {
  constexpr int kArchReqXcompPerm = 0x1023, kXtileData = 18;
  return syscall(SYS_arch_prctl, kArchReqXcompPerm, kXtileData) == 0;
}

CpuLevels Detect() {
  const Cpuid seven = Leaf(7, 0);
  CpuWords words{.one_c = Leaf(1, 0).c,
                 .seven_b = seven.b,
                 .seven_c = seven.c,
                 .seven_d = seven.d,
                 .seven_one_a = Leaf(7, 1).a,
                 .saved_states = SavedStates(),
                 .tiles_granted = false};
  words.tiles_granted = Has(words.seven_d, 24) && AskForTiles();
  return LevelsOf(words);
}

#else

CpuLevels Detect() { return LevelsOf({}); }

#endif

}  // namespace

CpuLevels LevelsOf(const CpuWords& words) {
  CpuLevels levels;
  const auto saves = [&](uint64_t states) { return (words.saved_states & states) == states; };
  const auto set = [&](CpuLevel level, bool yes) {
    levels.supported[(int)level] = yes;
    if (yes) levels.best = level;
    return yes;
  };
  set(CpuLevel::kPortable, true);
  const bool avx2 =
      set(CpuLevel::kAvx2, saves(0x6) && Has(words.one_c, 28) && Has(words.one_c, 12) &&
                               Has(words.one_c, 29) && Has(words.seven_b, 5));
  const bool avx2_vnni = set(CpuLevel::kAvx2Vnni, avx2 && Has(words.seven_one_a, 4));
  const bool avx512 = set(CpuLevel::kAvx512, avx2 && saves(0xe6) && Has(words.seven_b, 16) &&
                                                 Has(words.seven_b, 17) && Has(words.seven_b, 30) &&
                                                 Has(words.seven_b, 31));
  const bool vnni = set(CpuLevel::kAvx512Vnni, avx512 && Has(words.seven_c, 11));
  const bool bf16 = set(CpuLevel::kAvx512Bf16, vnni && Has(words.seven_one_a, 5));
  set(CpuLevel::kAmx, bf16 && saves(0x60000) && Has(words.seven_d, 22) && Has(words.seven_d, 24) &&
                          Has(words.seven_d, 25) && words.tiles_granted);
  // 256-bit VNNI beats AVX-512 without it.
  if (levels.best == CpuLevel::kAvx512 && avx2_vnni) levels.best = CpuLevel::kAvx2Vnni;
  return levels;
}

bool Supported(CpuLevel level) { return Detect().supported[(int)level]; }

CpuLevel BestLevel() { return Detect().best; }

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
    case CpuLevel::kAmx:
      return kAmxKernels;
#endif
    default:
      return kPortableKernels;
  }
}

}  // namespace ashlar::cpu
