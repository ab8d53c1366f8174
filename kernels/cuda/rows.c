#include "ashlar_rows.h"

#define HALVES (ASHLAR_DTYPE_BIT(ASHLAR_F16) | ASHLAR_DTYPE_BIT(ASHLAR_BF16))
#define FULL_AND_WINDOW \
  (ASHLAR_KIND_BIT(ASHLAR_FULL_ATTENTION) | ASHLAR_KIND_BIT(ASHLAR_SLIDING_WINDOW))

const ashlar_row ashlar_cuda_rows[] = {
    /* Split-KV decode and chunked prefill in portable code: the row every device falls back on. */
    {
        .name = "CUDA_PAGED",
        .platform = "cuda",
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
        .capability_unit = ASHLAR_CAP_CUDA,
        .capability_min = 80,
        .built_for = {"sm_80", "sm_90", "sm_100", "sm_120"},
        .verification = ASHLAR_COMPILE_VERIFIED,
    },
    /* wgmma over tiles of long sequences that TMA brings; short ones as CUDA_PAGED does. */
    {
        .name = "CUDA_HOPPER",
        .platform = "cuda",
        .kinds = FULL_AND_WINDOW,
        .dtypes = HALVES,
        .kv_dtypes = HALVES,
        .head_sizes = {64, 128, 256},
        .kernel_blocks = {{16, 1}},
        .preferred_block = 16,
        .layouts = {ASHLAR_LBHNC, ASHLAR_LBNHC, ASHLAR_BLHNC, ASHLAR_BLNHC, ASHLAR_BHLNC,
                    ASHLAR_LHBNC},
        .features = ASHLAR_HAS_WINDOW | ASHLAR_HAS_KV_CONNECTOR | ASHLAR_READS_LAYOUT_STRIDES,
        .capability_unit = ASHLAR_CAP_CUDA,
        .capability_min = 90,
        .capability_max = 90,
        .built_for = {"sm_90a"},
        .verification = ASHLAR_COMPILE_VERIFIED,
    },
    /* Prefill by the vendor's library; it takes a block table and whole heads only. */
    {
        .name = "CUDA_CUDNN",
        .platform = "cuda",
        .kinds = ASHLAR_KIND_BIT(ASHLAR_FULL_ATTENTION),
        .dtypes = HALVES,
        .kv_dtypes = HALVES,
        .head_sizes = {64, 128},
        .kernel_blocks = {{16, 1}},
        .preferred_block = 64,
        .layouts = {ASHLAR_LBHNC, ASHLAR_LBNHC},
        .features = ASHLAR_HAS_KV_CONNECTOR | ASHLAR_READS_LAYOUT_STRIDES,
        .capability_unit = ASHLAR_CAP_CUDA,
        .capability_min = 80,
        .built_for = {"sm_80", "sm_90", "sm_100", "sm_120"},
        .verification = ASHLAR_COMPILE_VERIFIED,
    },
    {
        .name = "CUDA_MLA",
        .platform = "cuda",
        .kinds = ASHLAR_KIND_BIT(ASHLAR_MLA_ATTENTION),
        .dtypes = HALVES,
        .kv_dtypes = HALVES,
        .head_sizes = {320, 576},
        .kernel_blocks = {{16, 1}},
        .preferred_block = 64,
        .layouts = {ASHLAR_LBHNC, ASHLAR_BLHNC},
        .features = ASHLAR_IS_MLA | ASHLAR_HAS_KV_CONNECTOR | ASHLAR_READS_LAYOUT_STRIDES,
        .capability_unit = ASHLAR_CAP_CUDA,
        .capability_min = 80,
        .built_for = {"sm_80", "sm_90", "sm_100", "sm_120"},
        .verification = ASHLAR_PLANNED,
    },
};
const int32_t ashlar_cuda_row_count = sizeof ashlar_cuda_rows / sizeof ashlar_cuda_rows[0];
