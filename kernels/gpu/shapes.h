// Shape checks that every launcher makes; what lies in device memory (ids, slots, tables) it cannot
// look at, so kernels leave out what would be outside.
#pragma once

#include <cstdint>
#include <string>

#include "ashlar_plugin.h"

namespace ashlar::gpu_kernels {

// "" when t is a float, f16 or bf16 [rows, cols] (or any extent where -1 is given) with dense rows;
// else what is wrong, beginning with `name`.
std::string CheckMatrix(const char* name, const ashlar_tensor& t, int64_t rows, int64_t cols);
// The same for [tokens, heads, dim], dense after the first dimension.
std::string CheckHeads(const char* name, const ashlar_tensor& t, int64_t tokens, int64_t heads,
                       int64_t dim);
// f32 [size], dense.
std::string CheckVector(const char* name, const ashlar_tensor& t, int64_t size);
// Whether every row of a matrix is whole groups of eight values, each aligned to 16 bytes.
bool HasEights(const ashlar_tensor& t);
// The cache as op `op` takes it.
std::string CheckKv(const char* op, const ashlar_kv_view& kv);

}  // namespace ashlar::gpu_kernels
