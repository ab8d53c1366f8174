#define ASHLAR_CPU_LEVEL avx512
#include "level_table.h"

const ashlar::cpu::KernelTable ashlar::cpu::kAvx512Kernels =
    ashlar::cpu::avx512::MakeTable("avx512");
