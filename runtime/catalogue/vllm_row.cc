#include "catalogue/vllm_row.h"

#include <algorithm>

namespace ashlar {
namespace {

// In the order of the enum.
constexpr std::array<std::string_view, kVllmKvDTypes> kKvNames = {
    "",
    "auto",
    "float16",
    "bfloat16",
    "fp8",
    "fp8_e4m3",
    "fp8_e5m2",
    "fp8_inc",
    "fp8_ds_mla",
    "nvfp4",
    "nvfp4_4over6",
    "nvfp4_ds_mla",
    "turboquant_k8v4",
    "turboquant_4bit_nc",
    "ultraquant_4bit",
    "octave_k3v4",
    "int4_per_token_head",
    "int8_per_token_head",
    "fp8_per_token_head",
};

}  // namespace

std::string_view Name(VllmKvDType type) { return kKvNames.at(static_cast<size_t>(type)); }

std::optional<VllmKvDType> ParseVllmKvDType(std::string_view name) {
  auto found = std::find(kKvNames.begin(), kKvNames.end(), name);
  if (name.empty() || found == kKvNames.end()) return std::nullopt;
  return static_cast<VllmKvDType>(found - kKvNames.begin());
}

bool VllmRow::AcceptsBlock(int tokens) const {
  return std::any_of(blocks.begin(), blocks.end(), [&](const BlockRule& rule) {
    if (rule.tokens == 0) return false;
    // A manager block can be split into kernel blocks, unless the row needs it whole.
    return exact_block ? rule.Accepts(tokens) : tokens > 0 && tokens % rule.tokens == 0;
  });
}

int VllmPreferredBlock(const VllmRow& row, int otherwise) {
  if (row.preferred > 0) return row.preferred;
  if (row.blocks[0].tokens == 0 || row.AcceptsBlock(otherwise)) return otherwise;
  int smallest = row.blocks[0].tokens;
  for (const BlockRule& rule : row.blocks) {
    if (rule.tokens > 0) smallest = std::min(smallest, rule.tokens);
  }
  return smallest;
}

}  // namespace ashlar
