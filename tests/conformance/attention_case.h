// One attention problem: several sequences with shuffled block tables in an arena of three layers,
// everything that no query may see poisoned with NaNs.
#pragma once

#include <string>
#include <vector>

#include "conformance/fixture.h"
#include "support/tensor_kv.h"

namespace ashlar::testing {

struct Sequence {
  int context = 0;  // tokens in the cache
  int queries = 0;  // the last of them, 1 is decode
};

// What a case varies.
struct AttentionShape {
  KvLayout layout = KvLayout::kLBHNC;
  DType kv_dtype = DType::kF32;
  int block_tokens = 16;
  int head_dim = 64;
  int kv_heads = 1;
  int query_ratio = 1;  // query heads per KV head
  int window = 0;
  std::vector<Sequence> sequences;
  // Queries that the KV dtype holds exactly, so that rounding them to it changes nothing.
  bool exact_queries = false;

  int q_heads() const { return kv_heads * query_ratio; }
  std::string text() const;
};

class AttentionCase {
 public:
  AttentionCase(const AttentionShape& shape, Random& random);

  const AttentionShape& shape() const { return shape_; }
  int tokens() const { return query_start_.back(); }
  float scale() const { return scale_; }
  // Query of `token` (over all sequences) and query head, [head_dim].
  const float* Query(int token, int head) const;
  // K values, then V values, of sequence s at `position`, exactly as the cache holds them.
  const float* KeyValue(int s, int position, int kv_head) const;

  // Runs all sequences as one batch: [tokens, q_heads, head_dim]. Fails the test when the kernel
  // writes anything but its output.
  std::vector<float> Run(const Device& device, int row) const;
  // The same problem with each query token as a batch of its own.
  std::vector<float> RunTokensAlone(const Device& device, int row) const;

 private:
  void FillSequences(Random& random);
  void FillArena(Random& random);
  std::vector<float> Launch(const Device& device, int row, const Guarded<std::byte>& arena,
                            const std::vector<float>& q, const std::vector<int32_t>& table,
                            const std::vector<int32_t>& starts,
                            const std::vector<int32_t>& context) const;
  void ExpectUnchanged(const Guarded<std::byte>& arena) const;

  AttentionShape shape_;
  float scale_;
  bool back_guard_;
  std::vector<float> q_;                       // [tokens, q_heads, head_dim]
  std::vector<std::vector<float>> key_value_;  // per sequence [context, kv_heads, 2 * head_dim]
  std::vector<int32_t> query_start_, context_;
  std::vector<int32_t> table_;  // [sequences, table_stride_]
  int table_stride_ = 0;
  int blocks_ = 0;
  KvStrides strides_{};
  int64_t layer_offset_ = 0;
  std::vector<std::byte> arena_;
};

}  // namespace ashlar::testing
