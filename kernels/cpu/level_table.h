// Included last by the one source of each level: its table.
#pragma once

#include "attend.h"
#include "float_matmul.h"
#ifdef ASHLAR_CPU_TILES
#include "bf16_tiles.h"
#endif
#include "level.h"
#include "quant_matmul.h"
#include "row_ops.h"

namespace ashlar::cpu::ASHLAR_CPU_LEVEL {

constexpr KernelTable MakeTable(const char* name) {
  return {.name = name,
          .q8_offset = kQ8Offset,
          .quantize_row = QuantizeRow,
          .matmul_quant = {MatmulQuant<Packed<0>>, MatmulQuant<Packed<1>>, MatmulQuant<Packed<2>>,
                           MatmulQuant<Packed<3>>, MatmulQuant<Packed<4>>, MatmulQuant<Packed<5>>,
                           MatmulQuant<Packed<6>>, MatmulQuant<Packed<7>>},
          .matmul_f32 = MatmulFloat<ReadF32>,
          .matmul_f16 = MatmulFloat<ReadF16>,
          .matmul_bf16 = MatmulFloat<ReadBf16>,
#ifdef __AVX512BF16__
          .matmul_bf16_dot = MatmulBf16Dot,
#endif
#ifdef ASHLAR_CPU_TILES
          .matmul_bf16_tiles = MatmulBf16Tiles,
          .tile_bf16_rows = TileBf16Rows,
#endif
          .rms_norm_row = RmsNormRow,
          .add_row = AddRow,
          .silu_row = SiluRow,
          .gelu_tanh_row = GeluTanhRow,
          .rope_half = RopeHalf,
          .rope_interleaved = RopeInterleaved,
          .scale_row = ScaleRow,
          .from_floats = FromFloats,
          .to_floats = ToFloats,
          .attend = Attend};
}

}  // namespace ashlar::cpu::ASHLAR_CPU_LEVEL
