#include "plan/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/nearest.h"
#include "plan/block_size.h"
#include "plan/cache_spec.h"

namespace ashlar {
namespace {

using Reasons = std::vector<Refusal>;

template <class T>
bool Contains(const std::vector<T>& list, const T& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

std::string Names(const std::vector<DType>& types) {
  std::vector<std::string> names;
  for (DType type : types) names.emplace_back(Info(type).name);
  return OneOf(names);
}

std::string Names(const std::vector<KvLayout>& layouts) {
  std::vector<std::string> names;
  for (KvLayout layout : layouts) names.emplace_back(Name(layout));
  return OneOf(names);
}

void CheckHeadSize(const AttentionRow& row, const AttentionRequest& request, Reasons& out) {
  std::string allowed;
  if (!row.head_sizes.empty()) {
    if (Contains(row.head_sizes, request.head_dim)) return;
    std::vector<std::string> sizes;
    for (int size : row.head_sizes) sizes.push_back(std::to_string(size));
    allowed = OneOf(sizes);
  } else {
    if (row.head_multiple <= 1 || request.head_dim % row.head_multiple == 0) return;
    allowed = fmt::format("a multiple of {}", row.head_multiple);
  }
  out.push_back({RefusalReason::kHeadSize,
                 fmt::format("head size {}: {} needs {}", request.head_dim, row.name, allowed),
                 ""});
}

void CheckTypes(const AttentionRow& row, const AttentionRequest& request, Reasons& out) {
  if (!Contains(row.dtypes, request.dtype)) {
    out.push_back(
        {RefusalReason::kDType,
         fmt::format("{}: {} takes {}", Info(request.dtype).name, row.name, Names(row.dtypes)),
         ""});
  }
  if (!row.kv_dtypes.empty() && !Contains(row.kv_dtypes, request.kv_dtype)) {
    out.push_back({RefusalReason::kKvDType,
                   fmt::format("KV in {}: {} takes {}", Info(request.kv_dtype).name, row.name,
                               Names(row.kv_dtypes)),
                   fmt::format("kv.dtype: {}", Info(row.kv_dtypes.front()).name)});
  }
}

void CheckBlock(const AttentionRow& row, const AttentionRequest& request, Reasons& out) {
  if (request.block_tokens == 0 || SupportsBlock(row, request.block_tokens)) return;
  out.push_back(
      {RefusalReason::kBlockSize,
       fmt::format("block {}: {} needs {}", request.block_tokens, row.name, BlockNeed(row)),
       fmt::format("kv.blockSize: {}", NearestBlocks({GroupRows{&row}}, request.block_tokens))});
}

void CheckLatent(const AttentionRow& row, const AttentionRequest& request, Reasons& out) {
  bool latent = Info(request.kind).latent;
  if (latent && !row.mla)
    out.push_back({RefusalReason::kMla, fmt::format("{} keeps K and V apart", row.name), ""});
  if (!latent && row.mla)
    out.push_back({RefusalReason::kNonMla, fmt::format("{} keeps one latent", row.name), ""});
}

void CheckCapability(const AttentionRow& row, const Target& target, Reasons& out) {
  const Capability& have = target.device.capability;
  // A capability means something only in its own unit.
  if (row.capability_unit == CapabilityUnit::kAny || row.capability_unit != have.unit) return;
  bool enough = have.unit == CapabilityUnit::kCpu
                    ? (have.value & row.capability_min) == row.capability_min
                    : have.value >= row.capability_min &&
                          (row.capability_max == 0 || have.value <= row.capability_max);
  if (enough) return;
  std::string names =
      have.names.empty() ? "this device" : fmt::format("{}", fmt::join(have.names, ", "));
  out.push_back(
      {RefusalReason::kCapability, fmt::format("{} lacks what {} needs", names, row.name), ""});
}

void CheckKind(const AttentionRow& row, const AttentionRequest& request, Reasons& out) {
  if (!Contains(row.kinds, request.kind)) {
    std::vector<std::string> kinds;
    for (KvKind kind : row.kinds) kinds.emplace_back(Name(kind));
    out.push_back(
        {RefusalReason::kKind,
         fmt::format("attention type {}: {} does {}", Name(request.kind), row.name, OneOf(kinds)),
         ""});
  }
  if (request.window > 0 && !row.window) {
    out.push_back({RefusalReason::kWindow,
                   fmt::format("window {}: {} reads every key", request.window, row.name), ""});
  }
}

void CheckFeatures(const AttentionRow& row, const AttentionRequest& request, Reasons& out) {
  if (request.non_causal && !row.non_causal)
    out.push_back({RefusalReason::kNonCausal, fmt::format("{} masks the future", row.name), ""});
  if (request.batch_invariant && !row.batch_invariant) {
    out.push_back({RefusalReason::kBatchInvariance,
                   fmt::format("{} may round differently in another batch", row.name),
                   "numerics: fast"});
  }
  if (request.kv_connector && !row.kv_connector)
    out.push_back({RefusalReason::kKvConnector, fmt::format("{}'s pages stay put", row.name), ""});
  if (request.layout && !row.layouts.empty() && !Contains(row.layouts, *request.layout)) {
    out.push_back(
        {RefusalReason::kLayout,
         fmt::format("layout {}: {} takes {}", Name(*request.layout), row.name, Names(row.layouts)),
         fmt::format("kv.layout: {}", Name(row.layouts.front()))});
  }
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

std::vector<Refusal> Validate(const AttentionRow& row, const AttentionRequest& request,
                              const Target& target) {
  Reasons out;
  if (!Contains(target.platforms, row.platform)) {
    bool here = Contains(target.present, row.platform);
    out.push_back({RefusalReason::kOtherDevice,
                   fmt::format("{} runs on {}, this plan on {}", row.name, row.platform,
                               target.device.platform),
                   here ? fmt::format("platform: {}", row.platform)
                        : fmt::format("a machine with a {} device", row.platform)});
    return out;
  }
  CheckHeadSize(row, request, out);
  CheckTypes(row, request, out);
  CheckBlock(row, request, out);
  CheckLatent(row, request, out);
  if (request.sinks && !row.sinks)
    out.push_back({RefusalReason::kSinks, fmt::format("{} has no sink term", row.name), ""});
  CheckCapability(row, target, out);
  CheckKind(row, request, out);
  CheckFeatures(row, request, out);
  if (!BuiltFor(row, target.device.capability)) {
    out.push_back(
        {RefusalReason::kNotBuilt,
         fmt::format("{} holds code for {}", row.name, OneOf(row.built_for)),
         fmt::format("build it for {}", fmt::join(target.device.capability.names, ", "))});
  }
  return out;
}

}  // namespace ashlar
