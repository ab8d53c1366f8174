// Rules between several facts, which no single capability states.
#include <algorithm>

#include "catalogue/vllm_tables.h"

namespace ashlar {
namespace {

using F = VllmFacts;
using R = VllmRequest;

// --- flash attention

bool SinksBelowHopper(const F& f, const R& r) { return r.sinks && f.major * 10 + f.minor < 90; }

bool PrefixOverQuantisedKv(const F& f, const R& r) {
  return f.major == 9 && r.mm_prefix && Quantised(r.kv);
}

bool QuantisedKvNeedsNewer(const F& f, const R& r) {
  if (!Quantised(r.kv)) return false;
  if (f.platform == VllmPlatform::kXpu) return r.kv == VllmKvDType::kFp8E5M2;
  int version = VllmFlashAttnVersion(f, r, r.head_size);
  bool runs = (f.major == 9 && (version == 3 || (version == 4 && r.head_size == 512))) ||
              (f.major == 10 && version == 4 && r.head_size <= 128);
  return !runs || r.kv == VllmKvDType::kFp8E5M2;
}

bool PrefixNeedsVersion4(const F& f, const R& r) {
  return r.mm_prefix && VllmFlashAttnVersion(f, r, r.head_size) != 4;
}

bool CausalPartNeedsNewer(const F& f, const R& r) {
  return VllmFlashAttnVersion(f, r, r.head_size) < 3;
}

bool NoFlashAttnMla(const F& f, const R&) { return !IsCuda(f) || f.major != 9 || !f.flash_attn_3; }

// --- FlashInfer

bool NoFlashInferKernels(const F& f, const R&) { return !VllmFlashInferRuns(f); }

bool NativeNvfp4(const F& f, const R& r) { return IsNvfp4(r.kv) && f.major != 10; }

// --- what the model is

bool TopkMissing(const R& r) { return r.model && !r.model->index_topk; }
bool Latent(const R& r) { return r.model && r.model->latent; }
bool NoRope(const R& r) { return Latent(r) && r.model->qk_rope == 0; }

template <size_t N>
bool NoneOf(int value, const int (&allowed)[N]) {
  return std::find(allowed, allowed + N, value) == allowed + N;
}

bool NotDeepSeek(const F&, const R& r) {
  return Latent(r) && (r.model->qk_nope != 128 || r.model->qk_rope != 64 || r.model->v_head != 128);
}

// --- DeepSeek V4

bool NotBlackwell(const F& f, const R&) { return f.major != 10 && f.major != 12; }
bool DsMlaOnDatacenter(const F& f, const R& r) {
  return f.major == 10 && r.kv == VllmKvDType::kFp8DsMla;
}
bool PlainKvOnWorkstation(const F& f, const R& r) {
  return f.major == 12 && !Quantised(r.kv) && r.kv != VllmKvDType::kNone;
}

constexpr VllmCombination kRules[] = {
    {"FLASH_ATTN", SinksBelowHopper, "sinks_need_9_0"},
    {"FLASH_ATTN", PrefixOverQuantisedKv, "prefix_over_quantised_kv"},
    {"FLASH_ATTN", QuantisedKvNeedsNewer, "quantised_kv_needs_newer_flash_attn"},
    {"FLASH_ATTN", PrefixNeedsVersion4, "prefix_needs_flash_attn_4"},
    {"FLASH_ATTN_DIFFKV", SinksBelowHopper, "sinks_need_9_0"},
    {"FLASH_ATTN_DIFFKV", PrefixOverQuantisedKv, "prefix_over_quantised_kv"},
    {"FLASH_ATTN_DIFFKV", QuantisedKvNeedsNewer, "quantised_kv_needs_newer_flash_attn"},
    {"FLASH_ATTN_DIFFKV", PrefixNeedsVersion4, "prefix_needs_flash_attn_4"},
    {"TRITON_FLASH_ATTN", QuantisedKvNeedsNewer, "quantised_kv_needs_newer_flash_attn"},
    {"TRITON_FLASH_ATTN", CausalPartNeedsNewer, "causal_part_needs_flash_attn_3"},

    {"FLASHINFER", [](const F& f, const R& r) { return NativeNvfp4(f, r) && r.head_size == 64; },
     "nvfp4_at_head_64"},
    {"FLASHINFER", [](const F& f, const R& r) { return NativeNvfp4(f, r) && r.sinks; },
     "nvfp4_with_sinks"},

    {"B12X", [](const F&, const R& r) { return r.dtype != DType::kBF16; },
     "needs_bfloat16_queries"},
    {"B12X", [](const F& f, const R&) { return !IsCuda(f) || !f.b12x; }, "package_missing"},

    {"FLASH_ATTN_MLA", NoFlashAttnMla, "no_flash_attn_mla"},
    {"FLASHMLA", [](const F& f, const R&) { return !IsCuda(f) || !f.flashmla; }, "not_compiled"},
    {"FLASHMLA", [](const F& f, const R& r) { return r.sparse && f.major != 9 && f.major != 10; },
     "sparse_needs_hopper_or_blackwell"},
    {"FLASHMLA", [](const F& f, const R& r) { return !r.sparse && f.major != 9; },
     "dense_needs_hopper"},
    {"FLASHINFER_MLA",
     [](const F&, const R& r) {
       return Latent(r) && NoneOf(r.model->qk_nope, {64, 128, 192});
     },
     "head_dims"},
    {"TOKENSPEED_MLA", [](const F& f, const R&) { return !IsCuda(f) || !f.tokenspeed; },
     "package_missing"},
    {"TOKENSPEED_MLA", NotDeepSeek, "head_dims"},

    {"FLASH_ATTN_MLA_SPARSE", [](const F&, const R& r) { return Quantised(r.kv); },
     "needs_unquantised_kv"},
    {"FLASH_ATTN_MLA_SPARSE", NoFlashAttnMla, "no_flash_attn_mla"},
    {"FLASH_ATTN_MLA_SPARSE", [](const F&, const R& r) { return r.model && r.dcp; }, "no_dcp"},
    {"FLASH_ATTN_MLA_SPARSE", [](const F&, const R& r) { return TopkMissing(r); }, "no_index_topk"},

    {"FLASH_ATTN_MLA_SPARSE_FA4", NoFlashInferKernels, "no_flashinfer_kernels"},
    {"FLASH_ATTN_MLA_SPARSE_FA4", [](const F& f, const R&) { return !f.cutlass_dsl; },
     "package_missing"},
    {"FLASH_ATTN_MLA_SPARSE_FA4",
     [](const F&, const R& r) { return r.model && r.model->index_topk.value_or(1) % 128 != 0; },
     "index_topk"},
    {"FLASH_ATTN_MLA_SPARSE_FA4",
     [](const F&, const R& r) {
       return Latent(r) && (r.model->kv_lora_rank != 512 || r.model->qk_rope != 64);
     },
     "head_dims"},
    {"FLASH_ATTN_MLA_SPARSE_FA4",
     [](const F&, const R& r) {
       return r.model && NoneOf(r.model->query_heads, {8, 16, 32, 64, 128});
     },
     "query_heads"},

    {"FLASHINFER_MLA_SPARSE", [](const F&, const R& r) { return r.kv == VllmKvDType::kFp8DsMla; },
     "no_fp8_ds_mla"},
    {"FLASHINFER_MLA_SPARSE",
     [](const F&, const R& r) {
       return NoRope(r) && (r.model->qk_nope != 256 || r.model->kv_lora_rank != 512);
     },
     "head_dims_without_rope"},
    {"FLASHINFER_MLA_SPARSE",
     [](const F&, const R& r) {
       return Latent(r) && !NoRope(r) && NoneOf(r.model->qk_nope, {128, 192});
     },
     "head_dims"},
    {"FLASHINFER_MLA_SPARSE", [](const F&, const R& r) { return TopkMissing(r); }, "no_index_topk"},

    {"FLASHINFER_MLA_SPARSE_SM90", NoFlashInferKernels, "no_flashinfer_kernels"},
    {"FLASHINFER_MLA_SPARSE_SM90", [](const F&, const R& r) { return !r.sparse; }, "sparse_only"},
    {"FLASHINFER_MLA_SPARSE_SM90",
     [](const F&, const R& r) { return r.model && r.model->kv_lora_rank != 512; }, "head_dims"},

    // Upstream repeats two of its own checks here.
    {"FLASHINFER_MLA_SPARSE_SM120", NoFlashInferKernels, "no_flashinfer_kernels"},
    {"FLASHINFER_MLA_SPARSE_SM120", [](const F&, const R& r) { return r.dtype != DType::kBF16; },
     "", RefusalReason::kDType},
    {"FLASHINFER_MLA_SPARSE_SM120",
     [](const F&, const R& r) {
       constexpr uint32_t kTaken =
           kKvE4M3 | Set({VllmKvDType::kNone, VllmKvDType::kAuto, VllmKvDType::kFp8DsMla});
       return (kTaken & Set({r.kv})) == 0;
     },
     "", RefusalReason::kKvDType},
    {"FLASHINFER_MLA_SPARSE_SM120", [](const F&, const R& r) { return TopkMissing(r); },
     "no_index_topk"},
    {"FLASHINFER_MLA_SPARSE_SM120",
     [](const F&, const R& r) { return r.model && r.model->index_topk != 2048; }, "index_topk"},

    {"FLASHMLA_SPARSE",
     [](const F& f, const R& r) {
       constexpr uint32_t kTaken = Set({VllmKvDType::kNone, VllmKvDType::kAuto,
                                        VllmKvDType::kBFloat16, VllmKvDType::kFp8DsMla});
       return r.head_size == 512 && (f.major != 9 || (kTaken & Set({r.kv})) == 0);
     },
     "head_512"},
    {"FLASHMLA_SPARSE",
     [](const F&, const R& r) { return r.head_size == 512 && r.model && r.model->qk_rope != 0; },
     "head_512_with_rope"},
    {"FLASHMLA_SPARSE",
     [](const F& f, const R& r) { return r.kv == VllmKvDType::kNvfp4DsMla && f.major != 10; },
     "nvfp4_needs_blackwell"},

    {"FLASHINFER_MLA_SPARSE_DSV4", NotBlackwell, "needs_blackwell"},
    {"FLASHINFER_MLA_SPARSE_DSV4", DsMlaOnDatacenter, "no_fp8_ds_mla"},
    {"FLASHINFER_MLA_SPARSE_DSV4", PlainKvOnWorkstation, "", RefusalReason::kKvDType},
    {"FLASHINFER_MLA_SPARSE_DSV41", NotBlackwell, "needs_blackwell"},
    {"FLASHINFER_MLA_SPARSE_DSV41", DsMlaOnDatacenter, "no_fp8_ds_mla"},
    {"FLASHINFER_MLA_SPARSE_DSV41", PlainKvOnWorkstation, "", RefusalReason::kKvDType},
    {"FLASHMLA_MEGA_ATTN_DSV41", [](const F& f, const R&) { return !IsCuda(f) || !f.flashmla; },
     "not_compiled"},
    {"FLASHMLA_MEGA_ATTN_DSV41", [](const F& f, const R&) { return f.major != 9 && f.major != 10; },
     "sparse_needs_hopper_or_blackwell"},
};

}  // namespace

std::span<const VllmCombination> VllmCombinations() { return kRules; }

}  // namespace ashlar
