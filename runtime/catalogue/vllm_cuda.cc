// CUDA: ranks, and what an installation changes in the rows.
#include "catalogue/vllm_tables.h"

namespace ashlar {
namespace {

using F = VllmFacts;
using R = VllmRequest;

// Ready-made trtllm kernels, unless they are switched off. Batch invariance switches them off.
bool Trtllm(const F& f, const R& r) {
  return IsCuda(f) && f.flashinfer && (f.flashinfer_cubin || f.artifactory) && !f.trtllm_off &&
         !r.batch_invariant;
}

// Version 3 on Hopper or 4 on datacenter Blackwell.
bool NewFlashAttn(const F& f, const R& r) {
  int version = VllmFlashAttnVersion(f, r, 0);
  return (f.major == 9 && version == 3) || (f.major == 10 && version == 4);
}
bool NewFlashAttnAnywhere(const F& f, const R& r) {
  int version = VllmFlashAttnVersion(f, r, 0);
  return (f.major == 9 || f.major == 10) && version >= 3;
}

// Whether version 4 is known to the device. Upstream asks on ROCm too and reads the gfx name as a
// capability.
bool UpstreamKnowsFlashAttn4(const F& f, const R&) {
  if (f.platform == VllmPlatform::kRocm) return f.major == 9 || f.major == 11;
  return IsCuda(f) && (f.major == 9 || f.major == 10) && f.flash_attn_4;
}

// Only with the model known: its heads of 256 run in version 4, which needs whole blocks of 128.
bool WideHeadsInFlashAttn4(const F& f, const R& r) {
  return IsCuda(f) && f.major == 10 && f.flash_attn_4 && r.model && r.model->head_size == 256 &&
         !Quantised(r.kv);
}

bool Grouped(const VllmModel& model) {
  return model.kv_heads > 0 && model.query_heads > model.kv_heads &&
         model.query_heads % model.kv_heads == 0;
}

constexpr auto kFlashInferLayouts = Layouts({KvLayout::kLBHNC, KvLayout::kBLHNC});
constexpr uint32_t kKvNvfp4 =
    Set({VllmKvDType::kNvfp4, VllmKvDType::kNvfp4FourOverSix, VllmKvDType::kNvfp4DsMla});

// FLASH_ATTN_DIFFKV is FLASH_ATTN with values of another size.
#define FLASH_ATTN_CHANGES(name)                                                              \
  {.row = name, .when = NewFlashAttn, .add_kv = kKvE4M3},                                     \
      {.row = name, .when = NewFlashAttnAnywhere, .add_flags = kVllmSinks | kVllmHeadScales}, \
      {.row = name,                                                                           \
       .when = UpstreamKnowsFlashAttn4,                                                       \
       .add_flags = kVllmMmPrefix,                                                            \
       .heads = VllmHeads{.multiple = 8, .largest = 512}},                                    \
  {                                                                                           \
    .row = name, .when = WideHeadsInFlashAttn4, .blocks = Exactly({128})                      \
  }

constexpr VllmChange kChanges[] = {
    FLASH_ATTN_CHANGES("FLASH_ATTN"),
    FLASH_ATTN_CHANGES("FLASH_ATTN_DIFFKV"),
    {.row = "TRITON_FLASH_ATTN", .when = NewFlashAttn, .add_kv = kKvE4M3},
    {.row = "TRITON_FLASH_ATTN", .when = UpstreamKnowsFlashAttn4, .heads = Heads({256, 512})},
    {.row = "TRITON_FLASHINFER",
     .when = [](const F& f, const R&) { return IsCuda(f) && f.major == 10; },
     .layouts = kFlashInferLayouts},
    {.row = "FLASHINFER",
     .when = [](const F& f, const R&) { return IsCuda(f) && f.major == 10; },
     .layouts = kFlashInferLayouts},
    {.row = "FLASHINFER",
     .when = [](const F& f,
                const R&) { return f.major == 10 && VllmFlashInferRuns(f) && !f.trtllm_off; },
     .add_flags = kVllmQueryLengths},
    {.row = "FLASHINFER",
     .when = [](const F& f, const R& r) { return f.major == 10 && Trtllm(f, r); },
     .add_kv = kKvNvfp4},
    {.row = "FLASHINFER",
     .when = [](const F& f, const R&) { return f.major >= 8 && f.major != 10 && f.major != 11; },
     .add_kv = Set({VllmKvDType::kNvfp4})},
    {.row = "FLASHINFER",
     .when =
         [](const F& f, const R& r) {
           return (f.major == 9 || f.major == 10 || f.major == 12) && Trtllm(f, r);
         },
     .add_flags = kVllmSinks},
    {.row = "FLASHINFER",
     .when =
         [](const F& f, const R& r) {
           return f.major == 10 && Trtllm(f, r) && r.model && Grouped(*r.model);
         },
     .blocks = Exactly({16, 32, 64, 128, 256, 512, 1024})},
    {.row = "FLASHMLA_SPARSE_DSV41",
     .when = [](const F& f, const R&) { return f.major == 9; },
     .blocks = Exactly({64})},
};
#undef FLASH_ATTN_CHANGES

bool Any(const F&, const R&) { return true; }

// "Few heads" counts a stated number only.
bool FewHeads(const R& r) { return r.query_heads && *r.query_heads <= 16; }

constexpr VllmRank kRanks[] = {
    {false,
     [](const F& f, const R& r) { return f.major == 10 && r.mm_prefix && !r.non_causal; },
     {"TRITON_FLASHINFER", "FLASHINFER", "FLASH_ATTN", "TRITON_ATTN", "FLEX_ATTENTION",
      "TURBOQUANT"}},
    {false,
     [](const F& f, const R& r) { return f.major == 10 && !r.non_causal; },
     {"FLASHINFER", "FLASH_ATTN", "TRITON_ATTN", "FLEX_ATTENTION", "TURBOQUANT"}},
    {false,
     [](const F& f, const R& r) { return f.major == 9 && r.mm_prefix; },
     {"TRITON_FLASH_ATTN", "FLASH_ATTN", "FLASHINFER", "TRITON_ATTN", "FLEX_ATTENTION",
      "TURBOQUANT"}},
    {false, Any, {"FLASH_ATTN", "FLASHINFER", "TRITON_ATTN", "FLEX_ATTENTION", "TURBOQUANT"}},
    {true,
     [](const F& f, const R& r) { return f.major == 10 && Quantised(r.kv); },
     {"FLASHINFER_MLA", "TOKENSPEED_MLA", "CUTLASS_MLA", "FLASH_ATTN_MLA", "FLASHMLA", "TRITON_MLA",
      "FLASHINFER_MLA_SPARSE", "FLASHMLA_SPARSE"}},
    {true,
     [](const F& f, const R& r) { return f.major == 10 && FewHeads(r); },
     {"FLASHINFER_MLA", "TOKENSPEED_MLA", "CUTLASS_MLA", "FLASH_ATTN_MLA", "FLASHMLA", "TRITON_MLA",
      "FLASH_ATTN_MLA_SPARSE_FA4", "FLASHINFER_MLA_SPARSE", "FLASHMLA_SPARSE"}},
    {true,
     [](const F& f, const R&) { return f.major == 10; },
     {"FLASHINFER_MLA", "TOKENSPEED_MLA", "CUTLASS_MLA", "FLASH_ATTN_MLA", "FLASHMLA", "TRITON_MLA",
      "FLASHMLA_SPARSE", "FLASHINFER_MLA_SPARSE"}},
    {true,
     [](const F& f, const R&) { return f.major == 12; },
     {"TRITON_MLA", "FLASHINFER_MLA_SPARSE_SM120"}},
    {true,
     [](const F&, const R& r) { return r.head_size == 512; },
     {"FLASH_ATTN_MLA", "FLASHMLA", "FLASHINFER_MLA", "TRITON_MLA", "FLASHINFER_MLA_SPARSE_SM90",
      "FLASH_ATTN_MLA_SPARSE", "FLASHMLA_SPARSE"}},
    {true,
     Any,
     {"FLASH_ATTN_MLA", "FLASHMLA", "FLASHINFER_MLA", "TRITON_MLA", "FLASH_ATTN_MLA_SPARSE",
      "FLASHMLA_SPARSE", "FLASHINFER_MLA_SPARSE_SM90"}},
};

constexpr std::string_view kFlashInferRows[] = {"FLASHINFER", "FLASHINFER_MLA",
                                                "TRITON_FLASHINFER"};

}  // namespace

bool VllmFlashInferRuns(const VllmFacts& f) {
  return IsCuda(f) && f.flashinfer && (f.flashinfer_cubin || f.nvcc);
}

int VllmFlashAttnVersion(const VllmFacts& f, const VllmRequest& r, int head_size) {
  if (!IsCuda(f)) return 0;
  const bool has3 = f.major == 9 && f.flash_attn_3;
  const bool has4 = (f.major == 9 || f.major == 10) && f.flash_attn_4;
  int version = f.flash_attn_version;
  if (version == 0) version = has3 ? 3 : f.major == 10 && has4 ? 4 : 2;
  // A version 3 that is asked for on Blackwell becomes 4 where there is one.
  if (version == 3 && f.major >= 10) version = has4 ? 4 : 2;
  if ((version == 3 && !has3) || (version == 4 && !has4)) return 0;
  // Version 4 has no room for wide heads on Blackwell, with the model known for none above 128;
  // version 3 hands heads above 256 on to version 4.
  if (f.major == 10 && version == 4 && head_size > (r.model ? 128 : 256)) version = 2;
  if (version == 3 && head_size > 256 && has4) version = 4;
  if (version == 4 && r.batch_invariant) version = 2;
  return version;
}

std::span<const VllmChange> VllmCudaChanges() { return kChanges; }
std::span<const VllmRank> VllmCudaRanks() { return kRanks; }
std::span<const std::string_view> VllmFlashInferRows() { return kFlashInferRows; }

}  // namespace ashlar
