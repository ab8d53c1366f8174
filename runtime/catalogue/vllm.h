// What vLLM 0.33.0 would choose: its backends, ranks and rules as data. For plans that are labelled
// so and for parity tests; nothing here can be dispatched.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "catalogue/vllm_row.h"
#include "plan/request.h"

namespace ashlar {

enum class VllmPlatform : uint8_t { kCuda, kRocm, kCpu, kXpu };

// The machine, what is installed on it, and what would be an environment variable there.
struct VllmFacts {
  VllmPlatform platform = VllmPlatform::kCuda;
  int major = 0, minor = 0;  // compute capability; ROCm: from the gfx name
  std::string gfx;           // ROCm
  bool avx512 = false, amx = false;
  VllmKvDType run_kv = VllmKvDType::kAuto;  // of the whole run; a layer may differ

  bool flashinfer = true, flashinfer_cubin = true, nvcc = false, artifactory = false;
  bool flash_attn_2 = true, flash_attn_3 = true, flash_attn_4 = true;
  bool flashmla = true, cutlass_dsl = true, tokenspeed = false, b12x = false;
  int flash_attn_version = 0;            // forced; 0: as installed
  bool trtllm_off = false;               // trtllm attention switched off
  bool aiter = false, aiter_on = false;  // the package, and the master switch
  bool aiter_mha = true, aiter_mla = true;
  bool shuffle = false;  // AITER's own order of the cache

  bool operator==(const VllmFacts&) const = default;
};

// What backends read of the model beyond the layer.
struct VllmModel {
  int query_heads = 0, kv_heads = 0, head_size = 0;
  bool latent = false, encoder_decoder = false;
  int qk_nope = 0, qk_rope = 0, v_head = 0, kv_lora_rank = 0;  // latent attention
  std::optional<int> index_topk;                               // sparse attention
};

struct VllmRequest {
  int head_size = 0;
  DType dtype = DType::kBF16;
  VllmKvDType kv = VllmKvDType::kAuto;
  int block_tokens = 0;            // 0: not stated
  std::optional<int> query_heads;  // of one rank
  VllmAttention attention = VllmAttention::kDecoder;
  bool mla = false, sparse = false, sinks = false, mm_prefix = false, head_scales = false;
  bool window = false, prefix_window = false, non_causal = false, batch_invariant = false;
  bool kv_connector = false, pcp = false, dcp = false, adaptive_verification = false;
  std::optional<VllmModel> model;
};

struct VllmReason {
  RefusalReason reason = RefusalReason::kCombination;
  std::string_view why = {};  // of a combination: a stable label, "fp8_needs_flash_attn_3"
  bool operator==(const VllmReason&) const = default;
};
using VllmReasons = std::vector<VllmReason>;

struct VllmCandidate {
  std::string_view backend;
  VllmReasons reasons;  // empty: valid
};

enum class VllmError : uint8_t {
  kNone,
  kForcedInvalid,   // with forced_reasons
  kNoneValid,       // with the candidates' reasons
  kKvDType,         // CPU: this KV type is not there
  kSparse,          // CPU: no sparse attention
  kOtherPlatform,   // XPU: the forced backend is none of its own
  kUnknownBackend,  // the forced name is in no table
};
std::string_view Name(VllmError error);

struct VllmChoice {
  std::vector<VllmCandidate> candidates = {};  // by rank; none on platforms that do not rank
  VllmReasons forced_reasons = {};             // the validator's answer for a forced backend
  std::string_view chosen = {};                // "" with an error
  VllmError error = VllmError::kNone;
};

// `forced` is a backend's name or "". The upstream behaviour, defects included: each of those
// stands under a rule named Upstream...
VllmChoice VllmSelect(const VllmFacts& facts, const VllmRequest& request, std::string_view forced);

// The backend as this installation declares it; null: no such backend.
std::optional<VllmRow> FindVllmRow(std::string_view name, const VllmFacts& facts,
                                   const VllmRequest& request);
std::vector<std::string_view> VllmBackends();

// Every reason why not, in vLLM's order.
VllmReasons VllmValidate(const VllmRow& row, const VllmFacts& facts, const VllmRequest& request);

// The backends that are tried, first one first.
std::vector<std::string_view> VllmCandidates(const VllmFacts& facts, const VllmRequest& request);

// The separate choice for the prefill of latent attention.
struct VllmPrefillRequest {
  DType dtype = DType::kBF16;
  int qk_nope = 0, qk_rope = 0, v_head = 0;
};
VllmChoice VllmSelectMlaPrefill(const VllmFacts& facts, const VllmPrefillRequest& request);

}  // namespace ashlar
