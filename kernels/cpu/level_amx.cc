#define ASHLAR_CPU_LEVEL amx
#define ASHLAR_CPU_TILES "tiles_amx.h"
#include "level_table.h"

const ashlar::cpu::KernelTable ashlar::cpu::kAmxKernels = ashlar::cpu::amx::MakeTable("amx");
