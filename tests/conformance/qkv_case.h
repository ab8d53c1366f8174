// One problem for qkv_prepare and what it leaves behind.
#pragma once

#include <string>
#include <vector>

#include "conformance/fixture.h"
#include "support/tensor_kv.h"

namespace ashlar::testing {

struct QkvShape {
  KvLayout layout = KvLayout::kLBHNC;
  DType kv_dtype = DType::kF32;
  int block_tokens = 16, head_dim = 64, kv_heads = 1, q_heads = 1, tokens = 1;
  int rotary_dim = 0;  // 0: no rotation
  ashlar_rope_style style = ASHLAR_ROPE_HALF;
  float rope_scale = 1;
  bool q_norm = false, k_norm = false;
  std::string text() const;
};

struct QkvResult {
  std::vector<float> q;          // [tokens, q_heads, head_dim]
  std::vector<std::byte> cache;  // as it was, but for the entries written
};

class QkvCase {
 public:
  QkvCase(const QkvShape& shape, Random& random);

  QkvResult Run(const Device& device) const { return Launch(device, 0, shape_.tokens); }
  QkvResult RunTokenAlone(const Device& device, int token) const {
    return Launch(device, token, 1);
  }

  const QkvShape& shape() const { return shape_; }
  const std::vector<float>& qkv() const { return qkv_; }
  int64_t row() const { return int64_t{shape_.q_heads + 2 * shape_.kv_heads} * shape_.head_dim; }
  int position(int token) const { return positions_[static_cast<size_t>(token)]; }
  float inv_freq(int i) const { return inv_freq_[static_cast<size_t>(i)]; }
  const std::vector<float>& norm(bool of_k) const { return of_k ? k_norm_ : q_norm_; }
  // Byte of the cache where token's entry of this head begins; -1: not written.
  int64_t EntryAt(int token, int kv_head) const;
  const std::vector<std::byte>& cache() const { return cache_; }
  static constexpr float kEps = 1e-6f;

 private:
  QkvResult Launch(const Device& device, int first, int tokens) const;

  QkvShape shape_;
  bool back_guard_;
  std::vector<float> qkv_, q_norm_, k_norm_, inv_freq_;
  std::vector<int32_t> positions_;
  std::vector<int64_t> slots_;
  int blocks_ = 0;
  KvStrides strides_{};
  int64_t layer_offset_ = 0;
  std::vector<std::byte> cache_;
};

}  // namespace ashlar::testing
