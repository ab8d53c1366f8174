// CPU and XPU: fixed ladders that do not run the validator.
#include "catalogue/vllm_tables.h"

namespace ashlar {
namespace {

constexpr VllmChange kChanges[] = {
    {.row = "CPU_ATTN",
     .when =
         [](const VllmFacts& f, const VllmRequest&) {
           return f.platform == VllmPlatform::kCpu && (f.amx || f.avx512);
         },
     .add_kv = kKvFp8},
    {.row = "FLASH_ATTN",
     .when = [](const VllmFacts& f,
                const VllmRequest&) { return f.platform == VllmPlatform::kXpu; },
     .add_kv = kKvE4M3,
     .blocks = MultiplesOf(64),
     .heads = VllmHeads{.multiple = 8, .largest = 512}},
};

// Upstream ignores a forced backend but for the choice between the two MLA rows.
std::string_view UpstreamCpuMla(const VllmFacts& facts, std::string_view forced) {
  return facts.amx && forced != "CPU_MLA" ? "AMX_MLA" : "CPU_MLA";
}

bool CpuTakesKv(const VllmFacts& facts, VllmKvDType kv) {
  if (!Quantised(kv)) return true;
  bool fp8 = kv == VllmKvDType::kFp8 || kv == VllmKvDType::kFp8E4M3 || kv == VllmKvDType::kFp8E5M2;
  return fp8 && (facts.amx || facts.avx512);
}

VllmChoice Chosen(std::string_view backend) { return {.chosen = backend}; }
VllmChoice Refused(VllmError error) { return {.error = error}; }

VllmReasons XpuMlaReasons(const VllmFacts& facts, const VllmRequest& request) {
  return VllmValidate(*FindVllmRow("XPU_FLASH_ATTN_MLA", facts, request), facts, request);
}

VllmChoice XpuMla(const VllmFacts& facts, const VllmRequest& request, std::string_view forced) {
  if (forced == "TRITON_MLA") return Chosen("TRITON_MLA");
  if (!forced.empty() && forced != "FLASH_ATTN_MLA") return Refused(VllmError::kOtherPlatform);
  VllmReasons reasons = XpuMlaReasons(facts, request);
  if (reasons.empty()) return Chosen("XPU_FLASH_ATTN_MLA");
  if (forced.empty()) return Chosen("TRITON_MLA");
  return {.forced_reasons = std::move(reasons), .error = VllmError::kForcedInvalid};
}

}  // namespace

std::span<const VllmChange> VllmHostChanges() { return kChanges; }

VllmChoice VllmSelectCpu(const VllmFacts& facts, const VllmRequest& request,
                         std::string_view forced) {
  if (request.sparse) return Refused(VllmError::kSparse);
  if (request.mla) {
    return Quantised(request.kv) ? Refused(VllmError::kKvDType)
                                 : Chosen(UpstreamCpuMla(facts, forced));
  }
  return CpuTakesKv(facts, request.kv) ? Chosen("CPU_ATTN") : Refused(VllmError::kKvDType);
}

VllmChoice VllmSelectXpu(const VllmFacts& facts, const VllmRequest& request,
                         std::string_view forced) {
  if (IsTurboquant(request.kv)) return Chosen("TURBOQUANT");
  if (request.sparse) return Chosen("XPU_MLA_SPARSE");
  if (request.mla) return XpuMla(facts, request, forced);
  const bool prefix = request.mm_prefix && forced != "FLASH_ATTN";
  if (forced == "TRITON_ATTN" || request.dtype == DType::kF32 || request.batch_invariant || prefix)
    return Chosen("TRITON_ATTN");
  if (!forced.empty() && forced != "FLASH_ATTN") return Refused(VllmError::kOtherPlatform);
  return Chosen("FLASH_ATTN");
}

}  // namespace ashlar
