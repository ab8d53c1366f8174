/* The row tables as they are compiled into a plugin and into the runtime. */
#ifndef ASHLAR_ROWS_H_
#define ASHLAR_ROWS_H_

#include "ashlar_plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const ashlar_row ashlar_cpu_rows[];
extern const int32_t ashlar_cpu_row_count;
extern const ashlar_row ashlar_cuda_rows[];
extern const int32_t ashlar_cuda_row_count;
extern const ashlar_row ashlar_hip_rows[];
extern const int32_t ashlar_hip_row_count;
extern const ashlar_row ashlar_reference_rows[];
extern const int32_t ashlar_reference_row_count;

#ifdef __cplusplus
}
#endif

#endif
