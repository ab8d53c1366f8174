#include "common/op_args.h"

#include "common/shapes.h"

namespace ashlar {
namespace {

std::string CheckAttentionTensors(const ashlar_attention& a, uint32_t kv_dtypes) {
  std::string wrong = CheckKv(a.kv, kv_dtypes);
  if (wrong.empty()) wrong = CheckHeads("q", a.q, -1, -1, a.kv.head_dim);
  if (wrong.empty()) wrong = CheckHeads("out", a.out, a.q.shape[0], a.q.shape[1], a.kv.head_dim_v);
  if (wrong.empty() && (a.q.shape[1] < 1 || a.q.shape[1] % a.kv.kv_heads != 0)) {
    wrong = "attention: " + std::to_string(a.q.shape[1]) + " query heads over " +
            std::to_string(a.kv.kv_heads) + " KV heads";
  }
  if (wrong.empty() && (a.sequences < 0 || a.window < 0)) {
    wrong = "attention: negative sequences or window";
  }
  return wrong;
}

std::string CheckSequence(const ashlar_attention& a, int32_t s) {
  const int64_t queries = int64_t{a.query_start[s + 1]} - a.query_start[s];
  const std::string at = "attention: sequence " + std::to_string(s) + " has ";
  if (queries < 0) return at + "a negative number of queries";
  if (queries > a.context[s]) return at + "more queries than context";
  if (queries > a.max_query) return at + "more queries than max_query";
  if (a.context[s] > a.max_context) return at + "more context than max_context";
  if (queries == 0) return "";
  const int64_t oldest = QueryPosition(a, s, a.query_start[s]);
  const int64_t last = (a.context[s] - 1) / a.kv.block_tokens;
  if (last >= a.table_stride) return at + "a block table shorter than its context";
  for (int64_t i = FirstVisible(a, oldest) / a.kv.block_tokens; i <= last; ++i) {
    const int32_t block = a.block_table[s * a.table_stride + i];
    if (block < 0 || block >= a.kv.blocks) {
      return at + "block " + std::to_string(block) + " of " + std::to_string(a.kv.blocks) +
             " at entry " + std::to_string(i);
    }
  }
  return "";
}

}  // namespace

std::string CheckQkvPrepare(const ashlar_qkv_prepare& a, uint32_t kv_dtypes) {
  std::string wrong = CheckKv(a.kv, kv_dtypes);
  const int64_t dim = a.kv.head_dim, kv_heads = a.kv.kv_heads;
  if (wrong.empty() && a.kv.head_dim_v != dim) wrong = "K and V heads differ in size";
  if (wrong.empty()) wrong = CheckHeads("q_out", a.q_out, -1, -1, dim);
  if (wrong.empty()) {
    wrong = CheckMatrix("qkv", a.qkv, a.q_out.shape[0], (a.q_out.shape[1] + 2 * kv_heads) * dim);
  }
  if (wrong.empty() && a.q_norm.data != nullptr) wrong = CheckVector("q_norm", a.q_norm, dim);
  if (wrong.empty() && a.k_norm.data != nullptr) wrong = CheckVector("k_norm", a.k_norm, dim);
  if (wrong.empty() && a.inv_freq != nullptr &&
      (a.rotary_dim < 0 || a.rotary_dim % 2 != 0 || a.rotary_dim > dim)) {
    wrong = "rotary_dim " + std::to_string(a.rotary_dim);
  }
  if (wrong.empty() && a.rope_style != ASHLAR_ROPE_HALF &&
      a.rope_style != ASHLAR_ROPE_INTERLEAVED) {
    wrong = "unknown rope style";
  }
  const int64_t slots = a.kv.blocks * a.kv.block_tokens;
  for (int64_t t = 0; wrong.empty() && t < a.qkv.shape[0]; ++t) {
    if (a.slots[t] >= slots) {
      wrong = "slot " + std::to_string(a.slots[t]) + " of " + std::to_string(slots);
    }
  }
  return wrong.empty() ? wrong : "qkv_prepare: " + wrong;
}

std::string CheckAttention(const ashlar_attention& a, uint32_t kv_dtypes) {
  std::string wrong = CheckAttentionTensors(a, kv_dtypes);
  if (!wrong.empty()) return wrong;
  if (a.query_start[0] != 0) return "attention: query_start does not begin with 0";
  for (int32_t s = 0; s < a.sequences && wrong.empty(); ++s) wrong = CheckSequence(a, s);
  if (wrong.empty() && a.query_start[a.sequences] > a.q.shape[0]) {
    wrong = "attention: more queries than rows of q";
  }
  return wrong;
}

}  // namespace ashlar
