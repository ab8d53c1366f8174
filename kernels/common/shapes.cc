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

bool Has(uint32_t dtypes, ashlar_dtype dtype) { return (dtypes & ASHLAR_DTYPE_BIT(dtype)) != 0; }

// Of F32, F16, BF16 and F8_E4M3: "float32, float16 or bfloat16".
std::string Names(uint32_t dtypes) {
  constexpr struct {
    ashlar_dtype dtype;
    const char* name;
  } kNames[] = {{ASHLAR_F32, "float32"},
                {ASHLAR_F16, "float16"},
                {ASHLAR_BF16, "bfloat16"},
                {ASHLAR_F8_E4M3, "float8"}};
  std::string text;
  for (const auto& [dtype, name] : kNames) {
    if ((dtypes & ASHLAR_DTYPE_BIT(dtype)) == 0) continue;
    dtypes &= ~ASHLAR_DTYPE_BIT(dtype);
    text += (text.empty() ? "" : dtypes == 0 ? " or " : ", ") + std::string(name);
  }
  return text;
}

std::string Check(const char* name, const ashlar_tensor& t, int32_t rank, const int64_t* want,
                  uint32_t dtypes) {
  const std::string at = std::string(name) + ": ";
  if (!Has(dtypes, t.dtype)) return at + "not " + Names(dtypes);
  if (t.rank != rank) return at + "rank " + std::to_string(t.rank);
  const int64_t element = FloatBytes(t.dtype);
  int64_t dense = element;
  for (int32_t i = rank - 1; i >= 0; --i) {
    if (t.shape[i] < 0 || (want[i] >= 0 && t.shape[i] != want[i])) {
      return at + "shape " + Extents(t) + ", dimension " + std::to_string(i) + " should be " +
             std::to_string(want[i]);
    }
    // Rows may lie apart; what a row holds may not.
    const bool outermost = i == 0 && rank > 1;
    if (outermost ? t.stride[i] % element != 0 : t.stride[i] != dense) {
      return at + "stride of dimension " + std::to_string(i) + " is " + std::to_string(t.stride[i]);
    }
    dense *= t.shape[i];
  }
  if (t.data == nullptr && dense > 0) return at + "no data";
  return "";
}

}  // namespace

std::string CheckMatrix(const char* name, const ashlar_tensor& t, int64_t rows, int64_t cols,
                        uint32_t dtypes) {
  const int64_t want[] = {rows, cols};
  return Check(name, t, 2, want, dtypes);
}

std::string CheckHeads(const char* name, const ashlar_tensor& t, int64_t tokens, int64_t heads,
                       int64_t dim, uint32_t dtypes) {
  const int64_t want[] = {tokens, heads, dim};
  return Check(name, t, 3, want, dtypes);
}

std::string CheckVector(const char* name, const ashlar_tensor& t, int64_t size) {
  return Check(name, t, 1, &size, kFloat32);
}

std::string CheckKv(const ashlar_kv_view& kv, uint32_t dtypes) {
  if (kv.base == nullptr) return "kv: no data";
  if (!Has(dtypes, kv.dtype)) return "kv: not " + Names(dtypes);
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
