#define ASHLAR_CPU_LEVEL avx2_vnni
#include "level_table.h"

const ashlar::cpu::KernelTable ashlar::cpu::kAvx2VnniKernels =
    ashlar::cpu::avx2_vnni::MakeTable("avx2-vnni");
