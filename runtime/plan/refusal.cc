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

constexpr std::array<ReasonInfo, 19> kReasons = {{
    {RefusalReason::kHeadSize, "head_size", "head_size not supported"},
    {RefusalReason::kDType, "dtype", "dtype not supported"},
    {RefusalReason::kKvDType, "kv_cache_dtype", "kv_cache_dtype not supported"},
    {RefusalReason::kBlockSize, "block_size", "block_size not supported"},
    {RefusalReason::kMla, "mla", "MLA not supported"},
    {RefusalReason::kNonMla, "non_mla", "non-MLA not supported"},
    {RefusalReason::kSinks, "sinks", "attention sinks not supported"},
    {RefusalReason::kCapability, "capability", "compute capability not supported"},
    {RefusalReason::kKind, "kind", "attention type not supported"},
    {RefusalReason::kWindow, "sliding_window", "sliding window not supported"},
    {RefusalReason::kNonCausal, "non_causal", "non-causal attention not supported"},
    {RefusalReason::kBatchInvariance, "batch_invariance", "batch invariance not supported"},
    {RefusalReason::kKvConnector, "kv_connector", "KV connector not supported"},
    {RefusalReason::kLayout, "layout", "KV cache layout not supported"},
    {RefusalReason::kOtherDevice, "other_device", "other device"},
    {RefusalReason::kNotBuilt, "not_built", "not built for this architecture"},
    {RefusalReason::kForbidden, "forbidden", "forbidden by the spec"},
    {RefusalReason::kPlanned, "planned", "planned, no kernel yet"},
    {RefusalReason::kPluginMissing, "plugin_missing", "plugin not installed"},
}};

const ReasonInfo& Info(RefusalReason reason) {
  for (const ReasonInfo& info : kReasons) {
    if (info.reason == reason) return info;
  }
  Fail("every refusal reason has a row in kReasons", "");
}

}  // namespace

std::string_view Label(RefusalReason reason) { return Info(reason).label; }
std::string_view Text(RefusalReason reason) { return Info(reason).text; }

}  // namespace ashlar
