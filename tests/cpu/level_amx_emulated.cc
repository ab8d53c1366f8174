#define ASHLAR_CPU_LEVEL amx_emulated
#define ASHLAR_CPU_TILES "tiles_emulated.h"
#include "emulated.h"
#include "level_table.h"

const ashlar::cpu::KernelTable ashlar::cpu::kAmxEmulatedKernels =
    ashlar::cpu::amx_emulated::MakeTable("amx-emulated");
