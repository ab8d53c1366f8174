#define ASHLAR_CPU_LEVEL avx512_bf16
#include "level_table.h"

const ashlar::cpu::KernelTable ashlar::cpu::kAvx512Bf16Kernels =
    ashlar::cpu::avx512_bf16::MakeTable("avx512-bf16");
