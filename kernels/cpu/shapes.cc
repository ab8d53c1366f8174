#include "shapes.h"

namespace ashlar::cpu {
namespace {

std::string Check(const char* name, const ashlar_tensor& t, int rank, const int64_t* want) {
  const std::string at = std::string(name) + ": ";
  if (t.dtype != ASHLAR_F32) return at + "not float32";
  if (t.rank != rank)
    return at + "rank " + std::to_string(t.rank) + ", not " + std::to_string(rank);
  int64_t dense = 4;
  for (int i = rank - 1; i >= 0; --i) {
    if (t.shape[i] < 0 || (want[i] >= 0 && t.shape[i] != want[i]))
      return at + "dimension " + std::to_string(i) + " is " + std::to_string(t.shape[i]) +
             ", not " + std::to_string(want[i]);
    const bool rows_apart = i == 0 && rank > 1;
    if (rows_apart ? t.stride[i] % 4 != 0 : t.stride[i] != dense)
      return at + "stride of dimension " + std::to_string(i) + " is " + std::to_string(t.stride[i]);
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

std::string CheckKv(const ashlar_kv_view& kv) {
  if (kv.base == nullptr) return "kv: no data";
  if (kv.dtype != ASHLAR_F32 && kv.dtype != ASHLAR_F16 && kv.dtype != ASHLAR_BF16)
    return "kv: dtype is not float32, float16 or bfloat16";
  if (kv.blocks < 1 || kv.kv_heads < 1) return "kv: an extent is not positive";
  if (kv.block_tokens < 1 || kv.block_tokens % 16 != 0)
    return "kv: blocks of " + std::to_string(kv.block_tokens) + " tokens, not a multiple of 16";
  if (kv.head_dim < 1 || kv.head_dim % 16 != 0 || kv.head_dim_v < 1 || kv.head_dim_v % 16 != 0)
    return "kv: a head size is no multiple of 16";
  return "";
}

}  // namespace ashlar::cpu
