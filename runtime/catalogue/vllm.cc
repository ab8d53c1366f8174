#include "catalogue/vllm.h"

#include <algorithm>

#include "catalogue/vllm_tables.h"

namespace ashlar {
namespace {

template <class Visit>
void EachRow(Visit visit) {
  for (std::span<const VllmRow> rows : {VllmDenseRows(), VllmMlaRows(), VllmSparseRows()}) {
    for (const VllmRow& row : rows) visit(row);
  }
}

void Apply(VllmRow& row, std::span<const VllmChange> changes, const VllmFacts& facts,
           const VllmRequest& request) {
  for (const VllmChange& change : changes) {
    if (change.row != row.name || !change.when(facts, request)) continue;
    row.kv |= change.add_kv;
    row.flags |= change.add_flags;
    if (change.blocks[0].tokens > 0) row.blocks = change.blocks;
    if (change.layouts[0] != KvLayout{}) row.layouts = change.layouts;
    if (change.heads) row.heads = *change.heads;
  }
}

bool HasCapability(const VllmCapability& wanted, const VllmFacts& facts) {
  int have = facts.major * 10 + facts.minor;
  if (wanted.majors != 0 && (wanted.majors & Set({facts.major})) == 0) return false;
  if (have < wanted.at_least || have > wanted.at_most) return false;
  if (wanted.gfx[0].empty()) return true;
  if (facts.gfx.empty()) return !wanted.gfx_only;
  return std::find(wanted.gfx.begin(), wanted.gfx.end(), facts.gfx) != wanted.gfx.end();
}

std::span<const VllmRank> Ranks(const VllmFacts& facts) {
  return facts.platform == VllmPlatform::kRocm ? VllmRocmRanks() : VllmCudaRanks();
}

// A row that keeps K and V apart outermost is no candidate beside a connector, nor for a model with
// an encoder.
bool DropsSplitRow(const VllmRequest& request) {
  return request.kv_connector || (request.model && request.model->encoder_decoder);
}

bool CannotBeLoaded(std::string_view name, const VllmFacts& facts) {
  std::span<const std::string_view> rows = VllmFlashInferRows();
  return facts.platform == VllmPlatform::kCuda && !facts.flashinfer &&
         std::find(rows.begin(), rows.end(), name) != rows.end();
}

VllmReasons Judge(std::string_view name, const VllmFacts& facts, const VllmRequest& request) {
  if (CannotBeLoaded(name, facts)) return {{RefusalReason::kLoadFailure}};
  return VllmValidate(*FindVllmRow(name, facts, request), facts, request);
}

}  // namespace

std::string_view Name(VllmError error) {
  constexpr std::array<std::string_view, 7> kNames = {
      "none",   "forced_invalid", "none_valid",     "kv_dtype",
      "sparse", "other_platform", "unknown_backend"};
  return kNames.at(static_cast<size_t>(error));
}

std::vector<std::string_view> VllmBackends() {
  std::vector<std::string_view> names;
  EachRow([&](const VllmRow& row) { names.push_back(row.name); });
  return names;
}

std::optional<VllmRow> FindVllmRow(std::string_view name, const VllmFacts& facts,
                                   const VllmRequest& request) {
  std::optional<VllmRow> found;
  EachRow([&](const VllmRow& row) {
    if (row.name == name) found = row;
  });
  if (!found) return found;
  Apply(*found, VllmCudaChanges(), facts, request);
  Apply(*found, VllmRocmChanges(), facts, request);
  Apply(*found, VllmHostChanges(), facts, request);
  return found;
}

VllmReasons VllmValidate(const VllmRow& row, const VllmFacts& facts, const VllmRequest& request) {
  VllmReasons out;
  auto refuse_if = [&out](bool wrong, RefusalReason reason) {
    if (wrong) out.push_back({reason});
  };
  auto lacks = [&row](VllmFlag flag) { return !row.Has(flag); };
  refuse_if(!row.heads.Accepts(request.head_size), RefusalReason::kHeadSize);
  refuse_if(!row.Takes(request.dtype), RefusalReason::kDType);
  // A layer that states no KV type is fine but for rows of packed caches.
  const bool packed =
      !row.Takes(VllmKvDType::kAuto) && (row.name == "TURBOQUANT" || row.name == "ULTRAQUANT");
  const bool unstated = request.kv == VllmKvDType::kNone && !packed;
  refuse_if(!unstated && !row.Takes(request.kv), RefusalReason::kKvDType);
  refuse_if(request.block_tokens != 0 && !row.AcceptsBlock(request.block_tokens),
            RefusalReason::kBlockSize);
  refuse_if(request.mm_prefix && lacks(kVllmMmPrefix), RefusalReason::kMmPrefix);
  refuse_if(request.mla && lacks(kVllmMla), RefusalReason::kMla);
  refuse_if(!request.mla && row.Has(kVllmMla), RefusalReason::kNonMla);
  refuse_if(request.sinks && lacks(kVllmSinks), RefusalReason::kSinks);
  refuse_if(request.sparse && lacks(kVllmSparse), RefusalReason::kSparse);
  refuse_if(!request.sparse && row.Has(kVllmSparse), RefusalReason::kNonSparse);
  refuse_if(request.head_scales && lacks(kVllmHeadScales), RefusalReason::kHeadScales);
  refuse_if(!HasCapability(row.capability, facts), RefusalReason::kCapability);
  refuse_if((row.attention & Set({request.attention})) == 0, RefusalReason::kKind);
  refuse_if(request.window && lacks(kVllmWindow), RefusalReason::kWindow);
  refuse_if(request.prefix_window && lacks(kVllmPrefixWindow), RefusalReason::kPrefixWindow);
  refuse_if(request.non_causal && lacks(kVllmNonCausal), RefusalReason::kNonCausal);
  refuse_if(request.mla && request.non_causal && request.dcp && lacks(kVllmNonCausalDcp),
            RefusalReason::kNonCausalMlaDcp);
  refuse_if(request.batch_invariant && lacks(kVllmBatchInvariant), RefusalReason::kBatchInvariance);
  refuse_if(request.kv_connector && lacks(kVllmConnector), RefusalReason::kKvConnector);
  refuse_if(request.pcp && lacks(kVllmPcp), RefusalReason::kPcp);
  refuse_if(request.dcp && lacks(kVllmDcp), RefusalReason::kDcp);
  refuse_if(request.adaptive_verification && lacks(kVllmQueryLengths),
            RefusalReason::kQueryLengths);
  for (const VllmCombination& rule : VllmCombinations()) {
    if (rule.row != row.name || !rule.refuses(facts, request)) continue;
    out.push_back({rule.reason, rule.why});
    break;
  }
  return out;
}

std::vector<std::string_view> VllmCandidates(const VllmFacts& facts, const VllmRequest& request) {
  std::vector<std::string_view> names;
  for (const VllmRank& rank : Ranks(facts)) {
    if (rank.mla != request.mla || !rank.when(facts, request)) continue;
    for (std::string_view name : rank.rows) {
      if (name.empty()) break;
      if (name != "ROCM_ATTN" || !DropsSplitRow(request)) names.push_back(name);
    }
    break;
  }
  return names;
}

VllmChoice VllmWalk(const VllmFacts& facts, const VllmRequest& request, std::string_view forced) {
  VllmChoice choice;
  for (std::string_view name : VllmCandidates(facts, request)) {
    choice.candidates.push_back({name, Judge(name, facts, request)});
    if (choice.chosen.empty() && choice.candidates.back().reasons.empty()) choice.chosen = name;
  }
  if (!forced.empty()) {
    choice.forced_reasons = Judge(forced, facts, request);
    choice.chosen = choice.forced_reasons.empty() ? forced : std::string_view();
    if (choice.chosen.empty()) choice.error = VllmError::kForcedInvalid;
  } else if (choice.chosen.empty()) {
    choice.error = VllmError::kNoneValid;
  }
  return choice;
}

VllmChoice VllmSelect(const VllmFacts& facts, const VllmRequest& request, std::string_view forced) {
  if (!forced.empty()) {
    std::optional<VllmRow> row = FindVllmRow(forced, facts, request);
    if (!row) return {.error = VllmError::kUnknownBackend};
    forced = row->name;  // of the table: the choice outlives the caller's text
  }
  switch (facts.platform) {
    case VllmPlatform::kCuda:
      return VllmWalk(facts, request, forced);
    case VllmPlatform::kRocm:
      return VllmSelectRocm(facts, request, forced);
    case VllmPlatform::kCpu:
      return VllmSelectCpu(facts, request, forced);
    case VllmPlatform::kXpu:
      return VllmSelectXpu(facts, request, forced);
  }
  return {.error = VllmError::kUnknownBackend};
}

}  // namespace ashlar
