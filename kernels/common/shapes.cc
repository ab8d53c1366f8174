#include "common/shapes.h"

namespace ashlar {
namespace {

std::string Extents(const ashlar_tensor& t) {
  std::string text = "[";
  for (int32_t i = 0; i < t.rank && i < 4; ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(t.shape[i]);
  }
  return text + "]";
}

std::string Check(const char* name, const ashlar_tensor& t, int32_t rank, const int64_t* want) {
  const std::string at = std::string(name) + ": ";
  if (t.dtype != ASHLAR_F32) return at + "not float32";
  if (t.rank != rank) return at + "rank " + std::to_string(t.rank);
  int64_t dense = sizeof(float);
  for (int32_t i = rank - 1; i >= 0; --i) {
    if (t.shape[i] < 0 || (want[i] >= 0 && t.shape[i] != want[i])) {
      return at + "shape " + Extents(t) + ", dimension " + std::to_string(i) + " should be " +
             std::to_string(want[i]);
    }
    // Rows may lie apart; what a row holds may not.
    const bool outermost = i == 0 && rank > 1;
    if (outermost ? t.stride[i] % int64_t{sizeof(float)} != 0 : t.stride[i] != dense) {
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
  return Check(name, t, 1, &size);
}

std::string CheckKv(const ashlar_kv_view& kv, uint32_t dtypes) {
  if (kv.base == nullptr) return "kv: no data";
  if ((ASHLAR_DTYPE_BIT(kv.dtype) & dtypes) == 0) {
    return std::string("kv: dtype is not float32, float16") +
           ((dtypes & ASHLAR_DTYPE_BIT(ASHLAR_F8_E4M3)) != 0 ? ", bfloat16 or float8"
                                                             : " or bfloat16");
  }
  if (kv.blocks < 1 || kv.block_tokens < 1 || kv.kv_heads < 1 || kv.head_dim < 1 ||
      kv.head_dim_v < 1) {
    return "kv: an extent is not positive";
  }
  const int64_t element = FloatBytes(kv.dtype);
  if (kv.block_stride % element != 0 || kv.head_stride % element != 0 ||
      kv.token_stride % element != 0) {
    return "kv: a stride is no multiple of the element size";
  }
  return "";
}

}  // namespace ashlar
