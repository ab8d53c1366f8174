#define ASHLAR_CPU_LEVEL avx2
#include "level_table.h"

const ashlar::cpu::KernelTable ashlar::cpu::kAvx2Kernels = ashlar::cpu::avx2::MakeTable("avx2");
