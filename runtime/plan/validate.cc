#include "plan/validate.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "plan/block_size.h"
#include "plan/cache_spec.h"

namespace ashlar {
namespace {

template <class T>
bool Contains(const std::vector<T>& list, const T& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

bool TakesHead(const AttentionRow& row, int head_dim) {
  if (!row.head_sizes.empty()) return Contains(row.head_sizes, head_dim);
  return row.head_multiple <= 1 || head_dim % row.head_multiple == 0;
}

bool HasCapability(const AttentionRow& row, const Capability& have) {
  // A capability means something only in its own unit.
  if (row.capability_unit == CapabilityUnit::kAny || row.capability_unit != have.unit) return true;
  if (have.unit == CapabilityUnit::kCpu)
    return (have.value & row.capability_min) == row.capability_min;
  return have.value >= row.capability_min &&
         (row.capability_max == 0 || have.value <= row.capability_max);
}

// "sm_90a" -> 90, with the suffix that ties code to one architecture.
struct CudaTarget {
  uint32_t value = 0;
  bool exact = false;
};
std::optional<CudaTarget> ParseCudaTarget(std::string_view name) {
  if (!name.starts_with("sm_")) return std::nullopt;
  name.remove_prefix(3);
  CudaTarget target;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), target.value);
  if (error != std::errc()) return std::nullopt;
  target.exact = end != name.data() + name.size();
  return target;
}

}  // namespace

bool BuiltFor(const AttentionRow& row, const Capability& capability) {
  if (row.built_for.empty()) return true;
  for (const std::string& name : row.built_for) {
    if (Contains(capability.names, name)) return true;
    if (capability.unit != CapabilityUnit::kCuda) continue;
    std::optional<CudaTarget> target = ParseCudaTarget(name);
    if (!target) continue;
    if (target->value == capability.value) return true;
    if (!target->exact && target->value / 10 == capability.value / 10 &&
        target->value < capability.value)
      return true;
  }
  return false;
}

Refusals Validate(const AttentionRow& row, const AttentionRequest& request, const Target& target) {
  if (!Contains(target.platforms, row.platform)) return {RefusalReason::kOtherDevice};
  Refusals out;
  auto refuse_if = [&out](bool wrong, RefusalReason reason) {
    if (wrong) out.Add(reason);
  };
  const bool latent = Info(request.kind).latent;
  refuse_if(!TakesHead(row, request.head_dim), RefusalReason::kHeadSize);
  refuse_if(!Contains(row.dtypes, request.dtype), RefusalReason::kDType);
  refuse_if(!row.kv_dtypes.empty() && !Contains(row.kv_dtypes, request.kv_dtype),
            RefusalReason::kKvDType);
  refuse_if(request.block_tokens != 0 && !SupportsBlock(row, request.block_tokens),
            RefusalReason::kBlockSize);
  refuse_if(request.mm_prefix && !row.mm_prefix, RefusalReason::kMmPrefix);
  refuse_if(latent && !row.mla, RefusalReason::kMla);
  refuse_if(!latent && row.mla, RefusalReason::kNonMla);
  refuse_if(request.sinks && !row.sinks, RefusalReason::kSinks);
  refuse_if(request.sparse && !row.sparse, RefusalReason::kSparse);
  refuse_if(!request.sparse && row.sparse, RefusalReason::kNonSparse);
  refuse_if(request.head_scales && !row.head_scales, RefusalReason::kHeadScales);
  refuse_if(!HasCapability(row, target.device.capability), RefusalReason::kCapability);
  refuse_if(!Contains(row.kinds, request.kind), RefusalReason::kKind);
  refuse_if(request.window > 0 && !row.window, RefusalReason::kWindow);
  refuse_if(request.prefix_window && !row.prefix_window, RefusalReason::kPrefixWindow);
  refuse_if(request.non_causal && !row.non_causal, RefusalReason::kNonCausal);
  refuse_if(latent && request.non_causal && request.dcp, RefusalReason::kNonCausalMlaDcp);
  refuse_if(request.batch_invariant && !row.batch_invariant, RefusalReason::kBatchInvariance);
  refuse_if(request.kv_connector && !row.kv_connector, RefusalReason::kKvConnector);
  refuse_if(request.pcp && !row.pcp, RefusalReason::kPcp);
  refuse_if(request.dcp && !row.dcp, RefusalReason::kDcp);
  refuse_if(request.adaptive_verification && row.host_query_lengths, RefusalReason::kQueryLengths);
  refuse_if(request.layout && !row.layouts.empty() && !Contains(row.layouts, *request.layout),
            RefusalReason::kLayout);
  refuse_if(!BuiltFor(row, target.device.capability), RefusalReason::kNotBuilt);
  return out;
}

}  // namespace ashlar
