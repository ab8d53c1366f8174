#define ASHLAR_CPU_LEVEL avx512_vnni
#include "level_table.h"

const ashlar::cpu::KernelTable ashlar::cpu::kAvx512VnniKernels =
    ashlar::cpu::avx512_vnni::MakeTable("avx512-vnni");
