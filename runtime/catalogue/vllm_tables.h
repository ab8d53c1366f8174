// The tables behind vllm.h, one file each; internal to this module.
#pragma once

#include <span>

#include "catalogue/vllm.h"

namespace ashlar {

using VllmTest = bool (*)(const VllmFacts&, const VllmRequest&);

// What an installation changes in a row: when `when` holds.
struct VllmChange {
  std::string_view row;
  VllmTest when;
  uint32_t add_kv = 0, add_flags = 0;
  std::array<BlockRule, 8> blocks{};    // replaces the row's, when not empty
  std::array<KvLayout, 6> layouts{};    // likewise
  std::optional<VllmHeads> heads = {};  // likewise
};

// A rule that no capability states. Of one row's rules only the first that refuses counts.
struct VllmCombination {
  std::string_view row;
  VllmTest refuses;
  std::string_view why;  // a stable label
  RefusalReason reason = RefusalReason::kCombination;
};

// Candidates in order: those of the first rank whose test holds.
struct VllmRank {
  bool mla;
  VllmTest when;
  std::array<std::string_view, 10> rows;  // "" ends
};

// Rows that every platform knows, for any of them can be forced on any.
std::span<const VllmRow> VllmDenseRows();
std::span<const VllmRow> VllmMlaRows();
std::span<const VllmRow> VllmSparseRows();

std::span<const VllmChange> VllmCudaChanges();
std::span<const VllmCombination> VllmCombinations();
std::span<const VllmRank> VllmCudaRanks();
// Rows that cannot be imported without the flashinfer package.
std::span<const std::string_view> VllmFlashInferRows();

std::span<const VllmChange> VllmRocmChanges();
std::span<const VllmRank> VllmRocmRanks();
VllmChoice VllmSelectRocm(const VllmFacts& facts, const VllmRequest& request,
                          std::string_view forced);

std::span<const VllmChange> VllmHostChanges();
VllmChoice VllmSelectCpu(const VllmFacts& facts, const VllmRequest& request,
                         std::string_view forced);
VllmChoice VllmSelectXpu(const VllmFacts& facts, const VllmRequest& request,
                         std::string_view forced);

// The walk that ranks and validates, for platforms that do both.
VllmChoice VllmWalk(const VllmFacts& facts, const VllmRequest& request, std::string_view forced);

// FlashInfer's kernels are there, or can be built.
bool VllmFlashInferRuns(const VllmFacts& facts);

inline bool IsCuda(const VllmFacts& facts) { return facts.platform == VllmPlatform::kCuda; }

// The version of flash attention that would run heads of this size (0: of any), or 0 for none.
int VllmFlashAttnVersion(const VllmFacts& facts, const VllmRequest& request, int head_size);

constexpr VllmHeads Heads(std::initializer_list<int16_t> sizes) {
  VllmHeads heads;
  size_t i = 0;
  for (int16_t size : sizes) heads.sizes[i++] = size;
  return heads;
}
constexpr std::array<BlockRule, 8> Exactly(std::initializer_list<int> sizes) {
  std::array<BlockRule, 8> rules{};
  size_t i = 0;
  for (int size : sizes) rules[i++] = {size, false};
  return rules;
}
constexpr std::array<BlockRule, 8> MultiplesOf(int size) { return {{{size, true}}}; }
constexpr std::array<KvLayout, 6> Layouts(std::initializer_list<KvLayout> order) {
  std::array<KvLayout, 6> layouts{};
  size_t i = 0;
  for (KvLayout layout : order) layouts[i++] = layout;
  return layouts;
}
constexpr VllmCapability Majors(std::initializer_list<int> majors) {
  return {.majors = Set(majors)};
}

// Sets that many rows share.
inline constexpr uint32_t kHalves = Set({DType::kF16, DType::kBF16});
inline constexpr uint32_t kFloats = Set({DType::kF16, DType::kBF16, DType::kF32});
inline constexpr uint32_t kOnlyBf16 = Set({DType::kBF16});
inline constexpr uint32_t kKvFloats =
    Set({VllmKvDType::kAuto, VllmKvDType::kFloat16, VllmKvDType::kBFloat16});
inline constexpr uint32_t kKvE4M3 = Set({VllmKvDType::kFp8, VllmKvDType::kFp8E4M3});
inline constexpr uint32_t kKvFp8 = kKvE4M3 | Set({VllmKvDType::kFp8E5M2});
inline constexpr uint32_t kAllAttention =
    Set({VllmAttention::kDecoder, VllmAttention::kEncoder, VllmAttention::kEncoderOnly,
         VllmAttention::kEncoderDecoder});

}  // namespace ashlar
