// ROCm: ranks, what an installation changes, and the walk with its upstream defects.
#include <algorithm>

#include "catalogue/vllm_tables.h"

namespace ashlar {
namespace {

using F = VllmFacts;
using R = VllmRequest;

bool Cdna3Or4(const F& f) { return f.gfx == "gfx942" || f.gfx == "gfx950"; }

constexpr VllmChange kChanges[] = {
    {.row = "ROCM_AITER_MLA",
     .when = [](const F& f, const R&) { return f.gfx == "gfx950" && f.aiter; },
     .add_flags = kVllmNonCausal},
    {.row = "ROCM_AITER_TRITON_MLA",
     .when = [](const F& f, const R&) { return f.gfx == "gfx950" && f.aiter; },
     .add_flags = kVllmNonCausal},
    {.row = "ROCM_AITER_MLA_SPARSE",
     .when = [](const F& f, const R&) { return f.gfx.empty() || Cdna3Or4(f); },
     .add_flags = kVllmSinks},
    {.row = "ROCM_AITER_FA",
     .when = [](const F& f, const R&) { return f.shuffle && f.aiter; },
     .layouts = Layouts({KvLayout::kLHBNC, KvLayout::kLBHNC})},
    {.row = "ROCM_AITER_UNIFIED_ATTN",
     .when = [](const F&, const R& r) { return r.kv_connector; },
     .layouts = Layouts({KvLayout::kLBHNC})},
    {.row = "ROCM_OCTAVE",
     .when = [](const F& f, const R&) { return f.gfx == "gfx942"; },
     .layouts = Layouts({KvLayout::kLBHNC})},
};

// ROCM_ATTN keeps K and V apart outermost: see DropSplitRow.
constexpr VllmRank kRanks[] = {
    {true, [](const F&, const R& r) { return r.sparse; }, {"ROCM_AITER_MLA_SPARSE"}},
    {true,
     [](const F& f, const R&) { return Cdna3Or4(f) && f.aiter && f.aiter_on && f.aiter_mla; },
     {"ROCM_AITER_MLA", "TRITON_MLA", "ROCM_AITER_TRITON_MLA"}},
    {true, [](const F&, const R&) { return true; }, {"TRITON_MLA"}},
    // The switch of the unified backend is not asked on these.
    {false,
     [](const F& f, const R&) { return f.gfx.starts_with("gfx12") && f.aiter && f.aiter_on; },
     {"ROCM_AITER_UNIFIED_ATTN", "ROCM_ATTN", "TRITON_ATTN", "TURBOQUANT", "ROCM_OCTAVE",
      "ULTRAQUANT"}},
    {false,
     [](const F& f, const R&) { return Cdna3Or4(f) && f.aiter && f.aiter_on && f.aiter_mha; },
     {"ROCM_ATTN", "ROCM_AITER_FA", "ROCM_AITER_UNIFIED_ATTN", "TRITON_ATTN", "TURBOQUANT",
      "ROCM_OCTAVE", "ULTRAQUANT"}},
    {false,
     [](const F& f, const R&) { return Cdna3Or4(f) && f.aiter; },
     {"ROCM_ATTN", "ROCM_AITER_UNIFIED_ATTN", "TRITON_ATTN", "TURBOQUANT", "ROCM_OCTAVE",
      "ULTRAQUANT"}},
    {false,
     [](const F&, const R&) { return true; },
     {"ROCM_ATTN", "TRITON_ATTN", "TURBOQUANT", "ROCM_OCTAVE", "ULTRAQUANT"}},
};

// In a run whose cache is packed, layers that are not share the packed layout, LBNHC.
bool LayoutConflict(const F& facts, const R& request, std::string_view backend) {
  VllmRow row = *FindVllmRow(backend, facts, request);
  bool any = row.layouts[0] == KvLayout{};
  return !any &&
         std::find(row.layouts.begin(), row.layouts.end(), KvLayout::kLBNHC) == row.layouts.end();
}
bool UnpackedInTurboquantRun(const F& facts, const R& request) {
  return IsTurboquant(facts.run_kv) && !IsTurboquant(request.kv);
}
bool UnpackedInUltraquantRun(const F& facts, const R& request) {
  return facts.run_kv == VllmKvDType::kUltraquant4Bit && request.kv != facts.run_kv;
}

// Candidates are asked only when they are valid otherwise, and not in an ultraquant run.
void UpstreamAddLayoutConflict(const F& facts, const R& request, VllmCandidate& candidate) {
  if (candidate.reasons.empty() && UnpackedInTurboquantRun(facts, request) &&
      LayoutConflict(facts, request, candidate.backend))
    candidate.reasons.push_back({RefusalReason::kLayout, "turboquant"});
}

// A forced backend that only the packed cache rules out is passed over without a word.
bool UpstreamPassesOverForced(const F& facts, const R& request, std::string_view forced,
                              const VllmReasons& reasons) {
  bool packed = IsTurboquant(facts.run_kv) || facts.run_kv == VllmKvDType::kUltraquant4Bit;
  if (!packed) return false;
  if (!reasons.empty()) {
    return std::all_of(reasons.begin(), reasons.end(), [](const VllmReason& reason) {
      return reason.reason == RefusalReason::kKvDType;
    });
  }
  return (UnpackedInTurboquantRun(facts, request) || UnpackedInUltraquantRun(facts, request)) &&
         LayoutConflict(facts, request, forced);
}

}  // namespace

std::span<const VllmChange> VllmRocmChanges() { return kChanges; }
std::span<const VllmRank> VllmRocmRanks() { return kRanks; }

VllmChoice VllmSelectRocm(const VllmFacts& facts, const VllmRequest& request,
                          std::string_view forced) {
  VllmChoice choice = VllmWalk(facts, request, forced);
  choice.chosen = {};
  for (VllmCandidate& candidate : choice.candidates) {
    UpstreamAddLayoutConflict(facts, request, candidate);
    if (candidate.reasons.empty() && choice.chosen.empty()) choice.chosen = candidate.backend;
  }
  if (!forced.empty() && !UpstreamPassesOverForced(facts, request, forced, choice.forced_reasons)) {
    choice.chosen = choice.forced_reasons.empty() ? forced : std::string_view();
    choice.error = choice.chosen.empty() ? VllmError::kForcedInvalid : VllmError::kNone;
    return choice;
  }
  choice.error = choice.chosen.empty() ? VllmError::kNoneValid : VllmError::kNone;
  return choice;
}

}  // namespace ashlar
