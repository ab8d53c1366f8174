// The prefill of latent attention has its own rows and its own ranks.
#include <algorithm>

#include "catalogue/vllm_tables.h"

namespace ashlar {
namespace {

struct HeadDims {
  int qk_nope, qk_rope, v_head;
  constexpr bool operator==(const HeadDims&) const = default;
};
constexpr HeadDims kDeepSeek = {128, 64, 128};
constexpr HeadDims kWide = {192, 64, 256};

bool Anywhere(const VllmFacts&) { return true; }
bool HasFlashInfer(const VllmFacts& facts) { return facts.flashinfer; }
bool Nowhere(const VllmFacts&) { return false; }

struct PrefillRow {
  std::string_view name;
  uint32_t majors;  // bit per major; 0: any
  bool (*installed)(const VllmFacts&);
  VllmReason missing;            // the reason when it is not
  std::array<HeadDims, 2> dims;  // all zero ends; empty: any
};

constexpr VllmReason kNotLoaded = {RefusalReason::kLoadFailure};
constexpr VllmReason kNoPackage = {RefusalReason::kCombination, "package_missing"};

constexpr PrefillRow kRows[] = {
    {"FLASH_ATTN", 0, Anywhere, {}, {kDeepSeek, kWide}},
    {"FLASHINFER", Set({10}), HasFlashInfer, kNotLoaded, {kDeepSeek}},
    {"TRTLLM_RAGGED", Set({10}), HasFlashInfer, kNotLoaded, {kDeepSeek, kWide}},
    {"TOKENSPEED_MLA",
     Set({10}),
     [](const VllmFacts& f) { return f.tokenspeed; },
     kNoPackage,
     {kDeepSeek}},
    {"ROCM_AITER_FA", 1, Nowhere, kNotLoaded, {}},
};

VllmReasons Refused(const PrefillRow& row, const VllmFacts& facts,
                    const VllmPrefillRequest& request) {
  VllmReasons reasons;
  if (row.majors != 0 && (row.majors & Set({facts.major})) == 0)
    reasons.push_back({RefusalReason::kCapability});
  if (request.dtype == DType::kF32) reasons.push_back({RefusalReason::kDType});
  if (!row.installed(facts)) reasons.push_back(row.missing);
  const HeadDims dims = {request.qk_nope, request.qk_rope, request.v_head};
  const bool anything = row.dims[0] == HeadDims{};
  const bool listed =
      dims != HeadDims{} && std::find(row.dims.begin(), row.dims.end(), dims) != row.dims.end();
  if (!anything && !listed) reasons.push_back({RefusalReason::kHeadSize});
  return reasons;
}

std::vector<std::string_view> Ranked(const VllmFacts& facts, const HeadDims& dims) {
  if (facts.major != 10) return {"FLASH_ATTN"};
  if (dims == kWide) return {"TRTLLM_RAGGED", "FLASH_ATTN", "FLASHINFER", "TOKENSPEED_MLA"};
  return {"FLASH_ATTN", "TRTLLM_RAGGED", "FLASHINFER", "TOKENSPEED_MLA"};
}

}  // namespace

VllmChoice VllmSelectMlaPrefill(const VllmFacts& facts, const VllmPrefillRequest& request) {
  VllmChoice choice;
  for (const PrefillRow& row : kRows)
    choice.candidates.push_back({row.name, Refused(row, facts, request)});
  for (std::string_view name : Ranked(facts, {request.qk_nope, request.qk_rope, request.v_head})) {
    auto row = std::find_if(choice.candidates.begin(), choice.candidates.end(),
                            [&](const VllmCandidate& one) { return one.backend == name; });
    if (!row->reasons.empty()) continue;
    choice.chosen = name;
    return choice;
  }
  choice.error = VllmError::kNoneValid;
  return choice;
}

}  // namespace ashlar
