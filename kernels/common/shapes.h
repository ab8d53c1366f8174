// Checks of single tensors and caches, made before an op touches memory. Each returns "" or what is
// wrong.
#pragma once

#include <cstdint>
#include <string>

#include "ashlar_plugin.h"

namespace ashlar {

// Element types, as ASHLAR_DTYPE_BITs.
inline constexpr uint32_t kFloat32 = ASHLAR_DTYPE_BIT(ASHLAR_F32);
inline constexpr uint32_t kFloats =
    kFloat32 | ASHLAR_DTYPE_BIT(ASHLAR_F16) | ASHLAR_DTYPE_BIT(ASHLAR_BF16);

// t is [rows, cols] (-1: any extent) of one of `dtypes` with dense rows. The answer begins with
// `name`, as those of the next two do.
std::string CheckMatrix(const char* name, const ashlar_tensor& t, int64_t rows, int64_t cols,
                        uint32_t dtypes = kFloat32);
// The same for [tokens, heads, dim], each token dense.
std::string CheckHeads(const char* name, const ashlar_tensor& t, int64_t tokens, int64_t heads,
                       int64_t dim, uint32_t dtypes = kFloat32);
// f32 [size], dense.
std::string CheckVector(const char* name, const ashlar_tensor& t, int64_t size);
// Elements of one of `dtypes`, positive extents, strides of whole elements.
std::string CheckKv(const ashlar_kv_view& kv, uint32_t dtypes);

// Of F32, F16, BF16 and F8_E4M3.
inline int64_t FloatBytes(ashlar_dtype dtype) {
  return dtype == ASHLAR_F32 ? 4 : dtype == ASHLAR_F8_E4M3 ? 1 : 2;
}

inline float* Row(const ashlar_tensor& t, int64_t row) {
  return reinterpret_cast<float*>(static_cast<char*>(t.data) + row * t.stride[0]);
}

}  // namespace ashlar
