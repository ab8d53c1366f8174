// Reasons in words: what was asked, what the row offers, and the smallest change that would admit
// it.
#include <fmt/format.h>

#include <algorithm>

#include "base/nearest.h"
#include "plan/block_size.h"
#include "plan/select.h"
#include "plan/validate.h"

namespace ashlar {
namespace {

template <class T, class ToName>
std::string Names(const std::vector<T>& values, ToName name) {
  std::vector<std::string> names;
  for (const T& value : values) names.emplace_back(name(value));
  return OneOf(names);
}

std::string DTypes(const std::vector<DType>& types) {
  return Names(types, [](DType type) { return Info(type).name; });
}

std::string HeadNeed(const AttentionRow& row) {
  if (row.head_sizes.empty()) return fmt::format("a multiple of {}", row.head_multiple);
  return Names(row.head_sizes, [](int size) { return std::to_string(size); });
}

Explanation OtherDevice(const AttentionRow& row, const Target& target) {
  bool here =
      std::find(target.present.begin(), target.present.end(), row.platform) != target.present.end();
  return {
      fmt::format("{} runs on {}, this plan on {}", row.name, row.platform, target.device.platform),
      here ? fmt::format("platform: {}", row.platform)
           : fmt::format("a machine with a {} device", row.platform)};
}

std::string DeviceNames(const Target& target) {
  const std::vector<std::string>& names = target.device.capability.names;
  return names.empty() ? "this device" : fmt::format("{}", fmt::join(names, ", "));
}

// A reason that the rows' data alone cannot state, as the catalogue or the wish states it.
Explanation Stated(const Judgement& judgement, const Candidate& candidate, RefusalReason reason) {
  for (const RowFault& fault : judgement.basis->catalogue.faults) {
    if (fault.row == candidate.row && fault.reason == reason) return {fault.detail, ""};
  }
  if (reason == RefusalReason::kForbidden) {
    return {judgement.forbid_field,
            fmt::format("take {} out of {}", candidate.row, judgement.forbid_field)};
  }
  return {fmt::format("no plugin \"{}\" was found", candidate.platform),
          fmt::format("install libashlar_{}.so", candidate.platform)};
}

bool IsStated(RefusalReason reason) {
  return reason == RefusalReason::kForbidden || reason == RefusalReason::kPluginMissing ||
         reason == RefusalReason::kLoadFailure || reason == RefusalReason::kLaunchProbe ||
         reason == RefusalReason::kToolchain;
}

}  // namespace

Explanation Explain(RefusalReason reason, const AttentionRow& row, const AttentionRequest& request,
                    const Target& target) {
  const std::string& name = row.name;
  switch (reason) {
    case RefusalReason::kHeadSize:
      return {fmt::format("head size {}: {} needs {}", request.head_dim, name, HeadNeed(row)), ""};
    case RefusalReason::kDType:
      return {fmt::format("{}: {} takes {}", Info(request.dtype).name, name, DTypes(row.dtypes)),
              ""};
    case RefusalReason::kKvDType:
      return {fmt::format("KV in {}: {} takes {}", Info(request.kv_dtype).name, name,
                          DTypes(row.kv_dtypes)),
              fmt::format("kv.dtype: {}", Info(row.kv_dtypes.front()).name)};
    case RefusalReason::kBlockSize:
      return {
          fmt::format("block {}: {} needs {}", request.block_tokens, name, BlockNeed(row)),
          fmt::format("kv.blockSize: {}", NearestBlocks({GroupRows{&row}}, request.block_tokens))};
    case RefusalReason::kMmPrefix:
      return {fmt::format("{} masks every later token, of an image too", name), ""};
    case RefusalReason::kMla:
      return {fmt::format("{} keeps K and V apart", name), ""};
    case RefusalReason::kNonMla:
      return {fmt::format("{} keeps one latent", name), ""};
    case RefusalReason::kSinks:
      return {fmt::format("{} has no sink term", name), ""};
    case RefusalReason::kSparse:
      return {fmt::format("{} reads every key", name), ""};
    case RefusalReason::kNonSparse:
      return {fmt::format("{} reads only keys that an indexer picked", name), ""};
    case RefusalReason::kHeadScales:
      return {fmt::format("{} takes one scale for all heads", name), ""};
    case RefusalReason::kCapability:
      return {fmt::format("{} lacks what {} needs", DeviceNames(target), name), ""};
    case RefusalReason::kKind:
      return {fmt::format("attention type {}: {} does {}", Name(request.kind), name,
                          Names(row.kinds, [](KvKind kind) { return Name(kind); })),
              ""};
    case RefusalReason::kWindow:
      return {fmt::format("window {}: {} reads every key", request.window, name), ""};
    case RefusalReason::kPrefixWindow:
      return {fmt::format("{} has one window for prompt and answer", name), ""};
    case RefusalReason::kNonCausal:
      return {fmt::format("{} masks the future", name), ""};
    case RefusalReason::kNonCausalMlaDcp:
      return {fmt::format("{} cannot merge parts that see the future", name), ""};
    case RefusalReason::kBatchInvariance:
      return {fmt::format("{} may round differently in another batch", name), "numerics: fast"};
    case RefusalReason::kKvConnector:
      return {fmt::format("{}'s pages stay put", name), ""};
    case RefusalReason::kPcp:
      return {fmt::format("{} needs the whole prompt on one device", name), ""};
    case RefusalReason::kDcp:
      return {fmt::format("{} needs the whole context on one device", name), ""};
    case RefusalReason::kQueryLengths:
      return {fmt::format("{} plans a step from the host's query lengths", name), ""};
    case RefusalReason::kLayout:
      return {fmt::format("layout {}: {} takes {}", Name(*request.layout), name,
                          Names(row.layouts, [](KvLayout layout) { return Name(layout); })),
              fmt::format("kv.layout: {}", Name(row.layouts.front()))};
    case RefusalReason::kOtherDevice:
      return OtherDevice(row, target);
    case RefusalReason::kNotBuilt:
      return {fmt::format("{} holds code for {}", name, OneOf(row.built_for)),
              fmt::format("build it for {}", DeviceNames(target))};
    case RefusalReason::kCombination:
    case RefusalReason::kLoadFailure:
    case RefusalReason::kLaunchProbe:
    case RefusalReason::kToolchain:
    case RefusalReason::kForbidden:
    case RefusalReason::kPlanned:
    case RefusalReason::kPluginMissing:
      break;
  }
  return {};
}

Explanation Explain(const Candidate& candidate, RefusalReason reason) {
  if (candidate.judgement == nullptr) return {};
  const Judgement& judgement = *candidate.judgement;
  if (IsStated(reason)) return Stated(judgement, candidate, reason);
  for (const AttentionRow& row : judgement.basis->catalogue.rows) {
    if (row.name == candidate.row)
      return Explain(reason, row, judgement.request, judgement.basis->target);
  }
  return {};
}

std::string ValidWith(const Candidate& candidate) {
  std::string text;
  for (RefusalReason reason : candidate.refusals) {
    std::string change = Explain(candidate, reason).counterfactual;
    if (change.empty()) return "";
    text += (text.empty() ? "" : " and ") + change;
  }
  return text;
}

}  // namespace ashlar
