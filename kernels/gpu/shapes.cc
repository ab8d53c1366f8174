#include "shapes.h"

#include "number.h"

namespace ashlar::gpu_kernels {
namespace {

bool IsFloat(ashlar_dtype dtype) {
  return dtype == ASHLAR_F32 || dtype == ASHLAR_F16 || dtype == ASHLAR_BF16;
}

std::string Check(const char* name, const ashlar_tensor& t, int32_t rank, const int64_t* want) {
  const std::string at = std::string(name) + ": ";
  if (!IsFloat(t.dtype)) return at + "not float32, float16 or bfloat16";
  if (t.rank != rank) return at + "rank " + std::to_string(t.rank);
  int64_t dense = ElementBytes(t.dtype);
  for (int32_t i = rank - 1; i >= 0; --i) {
    if (t.shape[i] < 0 || (want[i] >= 0 && t.shape[i] != want[i])) {
      return at + "dimension " + std::to_string(i) + " is " + std::to_string(t.shape[i]) +
             ", should be " + std::to_string(want[i]);
    }
    // Rows may lie apart; what a row holds may not.
    const bool outermost = i == 0 && rank > 1;
    if (outermost ? t.stride[i] % ElementBytes(t.dtype) != 0 : t.stride[i] != dense) {
      return at + "stride of dimension " + std::to_string(i) + " is " + std::to_string(t.stride[i]);
    }
    dense *= t.shape[i];
  }
  if (t.data == nullptr && dense > 0) return at + "no data";
  return "";
}

}  // namespace

std::string CheckMatrix(const char* name, const ashlar_tensor& t, int64_t rows, int64_t cols) {
  const int64_t want[] = {rows, cols};
  return Check(name, t, 2, want);
}

std::string CheckHeads(const char* name, const ashlar_tensor& t, int64_t tokens, int64_t heads,
                       int64_t dim) {
  const int64_t want[] = {tokens, heads, dim};
  return Check(name, t, 3, want);
}

std::string CheckVector(const char* name, const ashlar_tensor& t, int64_t size) {
  if (t.dtype != ASHLAR_F32) return std::string(name) + ": not float32";
  return Check(name, t, 1, &size);
}

bool HasEights(const ashlar_tensor& t) {
  return t.shape[1] % 8 == 0 && t.stride[0] % 16 == 0 &&
         reinterpret_cast<uintptr_t>(t.data) % 16 == 0;
}

std::string CheckKv(const char* op, const ashlar_kv_view& kv) {
  const std::string at = std::string(op) + ": kv: ";
  if (kv.base == nullptr) return at + "no data";
  if (kv.dtype != ASHLAR_F16 && kv.dtype != ASHLAR_BF16 && kv.dtype != ASHLAR_F8_E4M3) {
    return at + "not float16, bfloat16 or float8";
  }
  if (kv.blocks < 1 || kv.block_tokens < 1 || kv.kv_heads < 1 || kv.head_dim < 1) {
    return at + "an extent is not positive";
  }
  if (kv.head_dim_v != kv.head_dim) return at + "K and V heads differ in size";
  const int64_t element = ElementBytes(kv.dtype);
  if (kv.block_stride % element != 0 || kv.head_stride % element != 0 ||
      kv.token_stride % element != 0) {
    return at + "a stride is no multiple of the element size";
  }
  return "";
}

}  // namespace ashlar::gpu_kernels
