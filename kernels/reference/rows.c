#include "ashlar_rows.h"

#define ANY_FLOAT \
  (ASHLAR_DTYPE_BIT(ASHLAR_F32) | ASHLAR_DTYPE_BIT(ASHLAR_F16) | ASHLAR_DTYPE_BIT(ASHLAR_BF16))

/* One row for both kinds: plain loops that follow the strides, any block size, any layout. */
const ashlar_row ashlar_reference_rows[] = {
    {
        .name = "REFERENCE",
        .platform = "reference",
        .kinds = ASHLAR_KIND_BIT(ASHLAR_FULL_ATTENTION) | ASHLAR_KIND_BIT(ASHLAR_SLIDING_WINDOW),
        .dtypes = ASHLAR_DTYPE_BIT(ASHLAR_F32),
        .kv_dtypes = ANY_FLOAT | ASHLAR_DTYPE_BIT(ASHLAR_F8_E4M3),
        .head_multiple = 1,
        .kernel_blocks = {{1, 1}},
        .preferred_block = 16,
        .layouts = {0},
        .features = ASHLAR_HAS_WINDOW | ASHLAR_HAS_KV_CONNECTOR | ASHLAR_IS_BATCH_INVARIANT |
                    ASHLAR_READS_LAYOUT_STRIDES,
        .verification = ASHLAR_TESTED,
    },
};
const int32_t ashlar_reference_row_count =
    sizeof ashlar_reference_rows / sizeof ashlar_reference_rows[0];
