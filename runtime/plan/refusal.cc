#include "plan/refusal.h"

#include <array>

#include "base/check.h"

namespace ashlar {
namespace {

struct ReasonInfo {
  RefusalReason reason;
  std::string_view label;  // metric label and JSON
  std::string_view text;
};

// In the order of the enum.
constexpr std::array<ReasonInfo, kRefusalReasons> kReasons = {{
    {RefusalReason::kHeadSize, "head_size", "head_size not supported"},
    {RefusalReason::kDType, "dtype", "dtype not supported"},
    {RefusalReason::kKvDType, "kv_cache_dtype", "kv_cache_dtype not supported"},
    {RefusalReason::kBlockSize, "block_size", "block_size not supported"},
    {RefusalReason::kMmPrefix, "mm_prefix",
     "partial multimodal token full attention not supported"},
    {RefusalReason::kMla, "mla", "MLA not supported"},
    {RefusalReason::kNonMla, "non_mla", "non-MLA not supported"},
    {RefusalReason::kSinks, "sinks", "attention sinks not supported"},
    {RefusalReason::kSparse, "sparse", "sparse not supported"},
    {RefusalReason::kNonSparse, "non_sparse", "non-sparse not supported"},
    {RefusalReason::kHeadScales, "head_scales", "per-head quant scales not supported"},
    {RefusalReason::kCapability, "capability", "compute capability not supported"},
    {RefusalReason::kKind, "kind", "attention type not supported"},
    {RefusalReason::kWindow, "sliding_window", "sliding window not supported"},
    {RefusalReason::kPrefixWindow, "prefix_window", "R-SWA not supported"},
    {RefusalReason::kNonCausal, "non_causal", "non-causal attention not supported"},
    {RefusalReason::kNonCausalMlaDcp, "non_causal_mla_dcp",
     "non-causal MLA attention with DCP not supported"},
    {RefusalReason::kBatchInvariance, "batch_invariance", "batch invariance not supported"},
    {RefusalReason::kKvConnector, "kv_connector", "KV connector not supported"},
    {RefusalReason::kPcp, "pcp", "PCP not supported"},
    {RefusalReason::kDcp, "dcp", "DCP not supported"},
    {RefusalReason::kQueryLengths, "query_lengths",
     "device-cpu query lens mismatch not supported, this is needed for adaptive verification"},
    {RefusalReason::kCombination, "combination", "combination not supported"},
    {RefusalReason::kLayout, "layout", "KV cache layout not supported"},
    {RefusalReason::kLoadFailure, "load_failure", "cannot be loaded"},
    {RefusalReason::kOtherDevice, "other_device", "other device"},
    {RefusalReason::kNotBuilt, "not_built", "not built for this architecture"},
    {RefusalReason::kLaunchProbe, "launch_probe", "launch probe failed"},
    {RefusalReason::kToolchain, "toolchain", "JIT tool chain missing"},
    {RefusalReason::kForbidden, "forbidden", "forbidden by the spec"},
    {RefusalReason::kPlanned, "planned", "planned, no kernel yet"},
    {RefusalReason::kPluginMissing, "plugin_missing", "plugin not installed"},
}};

const ReasonInfo& Info(RefusalReason reason) {
  const ReasonInfo& info = kReasons.at(static_cast<size_t>(reason));
  Check(info.reason == reason, "kReasons stands in the order of the enum");
  return info;
}

}  // namespace

std::string_view Label(RefusalReason reason) { return Info(reason).label; }
std::string_view Text(RefusalReason reason) { return Info(reason).text; }

}  // namespace ashlar
