// Included last by the one source of each level: its table.
#pragma once

#include "attend.h"
#include "float_matmul.h"
#include "level.h"
#include "quant_matmul.h"
#include "row_ops.h"

namespace ashlar::cpu {

#ifdef __AVX512BF16__
#define ASHLAR_BF16_DOT true, ASHLAR_CPU_LEVEL::MatmulBf16Dot
#else
#define ASHLAR_BF16_DOT false, nullptr
#endif

namespace ASHLAR_CPU_LEVEL {

constexpr KernelTable MakeTable(const char* name, bool bf16_dot,
                                void (*matmul_bf16_dot)(const FloatMatmul&)) {
  return {.name = name,
          .q8_offset = kQ8Offset,
          .has_bf16_dot = bf16_dot,
          .quantize_row = QuantizeRow,
          .matmul_quant = {MatmulQuant<Packed<0>>, MatmulQuant<Packed<1>>, MatmulQuant<Packed<2>>,
                           MatmulQuant<Packed<3>>, MatmulQuant<Packed<4>>, MatmulQuant<Packed<5>>,
                           MatmulQuant<Packed<6>>, MatmulQuant<Packed<7>>},
          .matmul_f32 = MatmulFloat<ReadF32>,
          .matmul_f16 = MatmulFloat<ReadF16>,
          .matmul_bf16 = MatmulFloat<ReadBf16>,
          .matmul_bf16_dot = matmul_bf16_dot,
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

}  // namespace ASHLAR_CPU_LEVEL
}  // namespace ashlar::cpu
