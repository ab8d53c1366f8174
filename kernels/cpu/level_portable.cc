#define ASHLAR_CPU_LEVEL portable
#include "level_table.h"

const ashlar::cpu::KernelTable ashlar::cpu::kPortableKernels =
    ashlar::cpu::portable::MakeTable("portable");
