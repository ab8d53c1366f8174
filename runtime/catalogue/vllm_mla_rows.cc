// Rows of latent attention that read every key.
#include "catalogue/vllm_tables.h"

namespace ashlar {
namespace {

constexpr uint32_t kMla = kVllmMla | kVllmConnector | kVllmPcp | kVllmQueryLengths;
constexpr VllmHeads kLatentHeads = Heads({320, 512, 576});

constexpr VllmRow kRows[] = {
    {.name = "FLASHINFER_MLA",
     .dtypes = kHalves,
     .kv = kKvFloats | kKvE4M3,
     .heads = kLatentHeads,
     .blocks = Exactly({32, 64}),
     .flags = kMla | kVllmDcp | kVllmNonCausal | kVllmNonCausalDcp,
     .capability = Majors({10})},
    {.name = "TOKENSPEED_MLA",
     .dtypes = kHalves,
     .kv = kKvE4M3,
     .heads = kLatentHeads,
     .blocks = Exactly({32, 64}),
     .flags = kMla | kVllmDcp | kVllmNonCausal | kVllmNonCausalDcp,
     .capability = Majors({10})},
    {.name = "CUTLASS_MLA",
     .dtypes = kHalves,
     .kv = kKvFloats | kKvE4M3,
     .heads = kLatentHeads,
     .blocks = Exactly({128}),
     .flags = kMla | kVllmDcp,
     .capability = Majors({10})},
    {.name = "FLASH_ATTN_MLA",
     .dtypes = kHalves,
     .kv = kKvFloats,
     .heads = kLatentHeads,
     .blocks = MultiplesOf(16),
     .flags = kMla | kVllmDcp | kVllmBatchInvariant,
     .capability = Majors({9})},
    {.name = "FLASHMLA",
     .dtypes = kHalves,
     .kv = kKvFloats | kKvE4M3,
     .heads = kLatentHeads,
     .blocks = Exactly({64}),
     .flags = kMla | kVllmDcp,
     .capability = Majors({9, 10})},
    {.name = "TRITON_MLA",
     .dtypes = kHalves,
     .kv = kKvFloats | kKvE4M3,
     .blocks = MultiplesOf(16),
     .flags = kMla | kVllmDcp | kVllmNonCausal | kVllmBatchInvariant},
    {.name = "CPU_MLA",
     .dtypes = kFloats,
     .kv = Set({VllmKvDType::kAuto}),
     .heads = Heads({576}),
     .blocks = Exactly({16}),
     .flags = kMla,
     .exact_block = true},
    {.name = "AMX_MLA",
     .dtypes = kOnlyBf16,
     .kv = kKvFloats,
     .heads = Heads({576}),
     .blocks = MultiplesOf(32),
     .flags = kMla},
    // XPU's flash attention for latents.
    {.name = "XPU_FLASH_ATTN_MLA",
     .reported = "FLASH_ATTN_MLA",
     .dtypes = kHalves,
     .kv = kKvFloats,
     .heads = Heads({576}),
     .blocks = MultiplesOf(64),
     .flags = kMla},
    {.name = "ROCM_AITER_MLA",
     .dtypes = kHalves,
     .kv = kKvFloats | kKvFp8,
     .blocks = MultiplesOf(1),
     .flags = kMla | kVllmDcp},
    {.name = "ROCM_AITER_TRITON_MLA",
     .reported = "AITER_TRITON_MLA",
     .dtypes = kHalves,
     .kv = kKvFloats | kKvFp8,
     .blocks = MultiplesOf(1),
     .flags = kMla | kVllmDcp},
};

}  // namespace

std::span<const VllmRow> VllmMlaRows() { return kRows; }

}  // namespace ashlar
