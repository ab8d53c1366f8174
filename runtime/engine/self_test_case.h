// One seeded batch of the self-test: a cache in the plan's layout, queries, and the answer of a
// device to them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/device.h"
#include "plan/plan.h"

namespace ashlar {

// A sequence of `context` tokens, of which the last `tokens` ask.
struct SelfTestQuery {
  int64_t tokens = 0, context = 0;
};

// In host memory: the cache of two layers, of which the second is read; everything that no query
// sees holds a large number.
class SelfTestCase {
 public:
  // The groups outlive the case.
  SelfTestCase(const Plan& plan, const KvGroup& group, const AttentionGroup& attention,
               std::vector<SelfTestQuery> queries, DType q_dtype);

  // The answer of one device, as floats [tokens, heads, head_dim_v].
  Result<std::vector<float>> Run(const Device& device, int row, DType q_dtype) const;

 private:
  void LayOutTables();
  void LayOutCache(KvLayout layout);
  void FillCache();
  void FillEntry(std::byte* entry, bool seen, uint64_t index) const;
  void FillQueries(DType q_dtype);
  std::vector<bool> SeenTokens() const;

  const KvGroup& group_;
  const LayerSpec& layer_;
  std::vector<SelfTestQuery> queries_;
  int64_t tokens_ = 0, kernel_blocks_ = 0, table_stride_ = 0;
  std::vector<int32_t> query_start_, context_, table_;
  std::vector<std::byte> cache_;
  int64_t layer_offset_ = 0;
  ashlar_kv_view view_{};
  std::vector<float> q_;  // exactly what the query's dtype holds
};

}  // namespace ashlar
