/* Plugins that must be refused; each definition breaks one thing. Every function aborts, so a
 * loader that calls anything before it has checked the table does not survive. */
#include <stddef.h>
#include <stdlib.h>

#include "ashlar_plugin.h"

void Called(void);
void Called(void) { abort(); }
#define NEVER(member) .member = (void*)Called

#ifdef BROKEN_SIZE
/* Only what stands before the first pointer; the sanitizer sees a read past it. */
static const struct { uint32_t abi, table_bytes; } table = {ASHLAR_PLUGIN_ABI, 8};
#elif defined(BROKEN_ABI)
/* A later ABI may lay out everything behind these two numbers differently. */
static const struct {
  uint32_t abi, table_bytes;
} table = {ASHLAR_PLUGIN_ABI + 1, sizeof(ashlar_plugin)};
#else

static const ashlar_row rows[] = {
    {.name = "FIRST",
#ifdef BROKEN_ROW_KIND
     .kinds = 1u << 30,
#endif
     .platform = "broken"},
    {
#ifdef BROKEN_ROW_NAMES
        .name = "FIRST",
#elif !defined(BROKEN_ROW_NAME)
        .name = "SECOND",
#endif
#ifdef BROKEN_ROW_PLATFORM
        .platform = "elsewhere",
#else
        .platform = "broken",
#endif
    },
};

static const ashlar_plugin table = {
    .abi = ASHLAR_PLUGIN_ABI,
    .table_bytes = sizeof(ashlar_plugin),
    .name = "broken",
    .memory = "host",
    .rows = rows,
    .row_count = 2,
    NEVER(probe),
    NEVER(last_error),
    NEVER(open),
    NEVER(close),
    NEVER(alloc),
    NEVER(release),
    NEVER(copy_in),
    NEVER(copy_out),
#ifdef BROKEN_STREAMS
    NEVER(stream_create),
#endif
    NEVER(weight_bytes),
    NEVER(weight_create),
    NEVER(weight_destroy),
    NEVER(embed),
    NEVER(gather),
    NEVER(rms_norm),
    NEVER(matmul),
    NEVER(qkv_prepare),
#ifndef BROKEN_OPS
    NEVER(attention),
    NEVER(add),
#endif
    NEVER(gated_activation),
    NEVER(copy_blocks),
    NEVER(row_launches),
};
#endif

const ashlar_plugin* ashlar_plugin_table(void) {
#ifdef BROKEN_NULL_TABLE
  (void)table;
  return NULL;
#else
  return (const ashlar_plugin*)&table;
#endif
}
