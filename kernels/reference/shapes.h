// Shape checks that every launcher makes before it touches memory.
#pragma once

#include <cstdint>
#include <string>

#include "ashlar_plugin.h"

namespace ashlar::reference {

// "" when t is f32 [rows, cols] (or any extent where -1 is given) with dense rows; else what is
// wrong, beginning with `name`.
std::string CheckMatrix(const char* name, const ashlar_tensor& t, int64_t rows, int64_t cols);
// The same for f32 [tokens, heads, dim], dense.
std::string CheckHeads(const char* name, const ashlar_tensor& t, int64_t tokens, int64_t heads,
                       int64_t dim);
// f32 [size], dense.
std::string CheckVector(const char* name, const ashlar_tensor& t, int64_t size);
std::string CheckKv(const ashlar_kv_view& kv);

inline float* Row(const ashlar_tensor& t, int64_t row) {
  return reinterpret_cast<float*>(static_cast<char*>(t.data) + row * t.stride[0]);
}

}  // namespace ashlar::reference
