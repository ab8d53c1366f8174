// Shape checks that every op makes before it touches memory.
#pragma once

#include <cstdint>
#include <string>

#include "ashlar_plugin.h"

namespace ashlar::cpu {

// Empty when t is f32 of this shape (-1: any extent) with dense rows; else what is wrong.
std::string CheckMatrix(const char* name, const ashlar_tensor& t, int64_t rows, int64_t cols);
std::string CheckHeads(const char* name, const ashlar_tensor& t, int64_t tokens, int64_t heads,
                       int64_t dim);
std::string CheckVector(const char* name, const ashlar_tensor& t, int64_t size);
std::string CheckKv(const ashlar_kv_view& kv);

inline int64_t ElementBytes(ashlar_dtype dtype) { return dtype == ASHLAR_F32 ? 4 : 2; }
inline float* Row(const ashlar_tensor& t, int64_t row) {
  return reinterpret_cast<float*>(static_cast<char*>(t.data) + row * t.stride[0]);
}

}  // namespace ashlar::cpu
