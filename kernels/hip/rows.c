#include "ashlar_rows.h"

#define HALVES (ASHLAR_DTYPE_BIT(ASHLAR_F16) | ASHLAR_DTYPE_BIT(ASHLAR_BF16))
#define FULL_AND_WINDOW \
  (ASHLAR_KIND_BIT(ASHLAR_FULL_ATTENTION) | ASHLAR_KIND_BIT(ASHLAR_SLIDING_WINDOW))

const ashlar_row ashlar_hip_rows[] = {
    /* The same source as CUDA_PAGED, at either wave width: the row every device falls back on. */
    {
        .name = "HIP_PAGED",
        .platform = "hip",
        .kinds = FULL_AND_WINDOW,
        .dtypes = HALVES | ASHLAR_DTYPE_BIT(ASHLAR_F32),
        .kv_dtypes = HALVES | ASHLAR_DTYPE_BIT(ASHLAR_F8_E4M3),
        .head_sizes = {32, 64, 80, 96, 128, 256},
        .kernel_blocks = {{16, 1}},
        .preferred_block = 16,
        .layouts = {ASHLAR_LBHNC, ASHLAR_LBNHC, ASHLAR_BLHNC, ASHLAR_BLNHC, ASHLAR_BHLNC,
                    ASHLAR_LHBNC},
        .features = ASHLAR_HAS_WINDOW | ASHLAR_HAS_KV_CONNECTOR | ASHLAR_IS_BATCH_INVARIANT |
                    ASHLAR_READS_LAYOUT_STRIDES,
        .built_for = {"gfx90a", "gfx942", "gfx1030", "gfx1100"},
        .verification = ASHLAR_COMPILE_VERIFIED,
    },
    /* Matrix cores of CDNA2 and CDNA3. */
    {
        .name = "HIP_MFMA",
        .platform = "hip",
        .kinds = FULL_AND_WINDOW,
        .dtypes = HALVES,
        .kv_dtypes = HALVES,
        .head_sizes = {64, 128, 256},
        .kernel_blocks = {{32, 1}},
        .preferred_block = 64,
        .layouts = {ASHLAR_LBHNC, ASHLAR_LBNHC, ASHLAR_BLHNC, ASHLAR_BLNHC},
        .features = ASHLAR_HAS_WINDOW | ASHLAR_HAS_KV_CONNECTOR | ASHLAR_READS_LAYOUT_STRIDES,
        .capability_unit = ASHLAR_CAP_GFX,
        .capability_min = 0x90a,
        .capability_max = 0x942,
        .built_for = {"gfx90a", "gfx942"},
        .verification = ASHLAR_PLANNED,
    },
    {
        .name = "HIP_MLA",
        .platform = "hip",
        .kinds = ASHLAR_KIND_BIT(ASHLAR_MLA_ATTENTION),
        .dtypes = HALVES,
        .kv_dtypes = HALVES,
        .head_sizes = {320, 576},
        .kernel_blocks = {{16, 1}},
        .preferred_block = 64,
        .layouts = {ASHLAR_LBHNC, ASHLAR_BLHNC},
        .features = ASHLAR_IS_MLA | ASHLAR_HAS_KV_CONNECTOR | ASHLAR_READS_LAYOUT_STRIDES,
        .capability_unit = ASHLAR_CAP_GFX,
        .capability_min = 0x90a,
        .capability_max = 0x950,
        .built_for = {"gfx90a", "gfx942", "gfx950"},
        .verification = ASHLAR_PLANNED,
    },
};
const int32_t ashlar_hip_row_count = sizeof ashlar_hip_rows / sizeof ashlar_hip_rows[0];
