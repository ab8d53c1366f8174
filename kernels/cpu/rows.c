#include "ashlar_rows.h"

#define ANY_FLOAT \
  (ASHLAR_DTYPE_BIT(ASHLAR_F32) | ASHLAR_DTYPE_BIT(ASHLAR_F16) | ASHLAR_DTYPE_BIT(ASHLAR_BF16))

/* Both rows read one (block, head) as a run of tokens, so LBHNC comes first: K and V of a head lie
 * together. */
const ashlar_row ashlar_cpu_rows[] = {
    {
        .name = "CPU_PAGED",
        .platform = "cpu",
        .kinds = ASHLAR_KIND_BIT(ASHLAR_FULL_ATTENTION),
        .dtypes = ASHLAR_DTYPE_BIT(ASHLAR_F32),
        .kv_dtypes = ANY_FLOAT,
        .head_multiple = 16,
        .kernel_blocks = {{16, 1}},
        .preferred_block = 32,
        .layouts = {ASHLAR_LBHNC, ASHLAR_LBNHC, ASHLAR_BLHNC, ASHLAR_BLNHC, ASHLAR_BHLNC,
                    ASHLAR_LHBNC},
        .features =
            ASHLAR_HAS_KV_CONNECTOR | ASHLAR_IS_BATCH_INVARIANT | ASHLAR_READS_LAYOUT_STRIDES,
        .verification = ASHLAR_TESTED,
    },
    {
        .name = "CPU_WINDOW",
        .platform = "cpu",
        .kinds = ASHLAR_KIND_BIT(ASHLAR_SLIDING_WINDOW),
        .dtypes = ASHLAR_DTYPE_BIT(ASHLAR_F32),
        .kv_dtypes = ANY_FLOAT,
        .head_multiple = 16,
        .kernel_blocks = {{16, 1}},
        .preferred_block = 32,
        .layouts = {ASHLAR_LBHNC, ASHLAR_LBNHC, ASHLAR_BLHNC, ASHLAR_BLNHC, ASHLAR_BHLNC,
                    ASHLAR_LHBNC},
        .features = ASHLAR_HAS_WINDOW | ASHLAR_HAS_KV_CONNECTOR | ASHLAR_IS_BATCH_INVARIANT |
                    ASHLAR_READS_LAYOUT_STRIDES,
        .verification = ASHLAR_TESTED,
    },
};
const int32_t ashlar_cpu_row_count = sizeof ashlar_cpu_rows / sizeof ashlar_cpu_rows[0];
