// How many blocks each KV group gets: from free bytes to blocks, so that every group holds equally
// many sequences of the context length.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/cache_spec.h"
#include "plan/plan.h"

namespace ashlar {

// What one group asks of the pool.
struct PoolNeed {
  CacheSpec cache;
  int block_tokens = 0;
  int64_t block_bytes = 0;  // of all its layers
};

// What all groups ask: one sequence of `length` tokens, of which `in_flight` are in one step.
// Beside it each group keeps its null block. Empty when it does not fit 64 bits.
std::optional<int64_t> SequenceBytes(const std::vector<PoolNeed>& needs, int64_t length,
                                     int64_t in_flight);
int64_t NullBlockBytes(const std::vector<PoolNeed>& needs);

// Blocks of each group, the null block included, for `bytes` in all: equal capacity in sequences of
// `length` tokens, at most `sequences` of them. At least one must fit.
std::vector<int64_t> SplitPool(const std::vector<PoolNeed>& needs, int64_t bytes, int64_t length,
                               int64_t in_flight, int sequences);

// The longest context up to `length` of which one sequence fits into `bytes`; 0 when none does.
int64_t LongestContext(const std::vector<PoolNeed>& needs, int64_t bytes, int64_t length,
                       int64_t in_flight);

// Fills budget, blocks, context and their reasons into the plan's groups, whose pages are known.
Problems SizeMemory(Plan& plan, const Spec& spec, const DeviceInfo& device, int64_t weight_bytes,
                    int64_t workspace_bytes);

}  // namespace ashlar
