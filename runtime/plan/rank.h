// In which order rows are tried. Rank is data beside the rows: one number on a row could not turn
// two of them round between architectures.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "plan/request.h"

namespace ashlar {

constexpr uint32_t KindBit(KvKind kind) { return 1u << static_cast<uint32_t>(kind); }

// The first rule of a platform that fits device and request orders that platform's rows.
struct RankRule {
  std::string_view platform;
  uint32_t capability_min = 0, capability_max = 0;  // in the platform's own unit; 0: no bound
  uint32_t kinds = 0;                               // KindBit; 0: any
  std::array<std::string_view, 8> rows;             // best first, "" ends
};

inline constexpr std::array<RankRule, 8> kRankRules = {{
    {"cuda", 0, 0, KindBit(KvKind::kMla), {"CUDA_MLA"}},
    {"cuda", 90, 90, 0, {"CUDA_HOPPER", "CUDA_PAGED", "CUDA_CUDNN"}},
    {"cuda", 0, 0, 0, {"CUDA_PAGED", "CUDA_CUDNN"}},
    {"hip", 0, 0, KindBit(KvKind::kMla), {"HIP_MLA"}},
    {"hip", 0, 0, 0, {"HIP_MFMA", "HIP_PAGED"}},
    {"cpu", 0, 0, KindBit(KvKind::kFull), {"CPU_PAGED"}},
    {"cpu", 0, 0, KindBit(KvKind::kSliding), {"CPU_WINDOW"}},
    {"reference", 0, 0, 0, {"REFERENCE"}},
}};

// Every row, first tried first: the target's platforms in their order, then other devices' rows.
// Within one platform: verification level, then the rule's order, then rows that no rule names, by
// name.
std::vector<const AttentionRow*> RankRows(const std::vector<AttentionRow>& rows,
                                          const AttentionRequest& request, const Target& target,
                                          std::span<const RankRule> rules);

}  // namespace ashlar
