#include "plan/rank.h"

#include <algorithm>
#include <tuple>

namespace ashlar {
namespace {

const RankRule* FindRule(std::span<const RankRule> rules, std::string_view platform,
                         const AttentionRequest& request, const Target& target) {
  uint32_t capability = target.device.capability.value;
  for (const RankRule& rule : rules) {
    if (rule.platform != platform) continue;
    if (rule.kinds != 0 && (rule.kinds & KindBit(request.kind)) == 0) continue;
    if (capability < rule.capability_min) continue;
    if (rule.capability_max != 0 && capability > rule.capability_max) continue;
    return &rule;
  }
  return nullptr;
}

size_t PositionInRule(const RankRule* rule, std::string_view row) {
  if (rule == nullptr) return 0;
  return static_cast<size_t>(std::find(rule->rows.begin(), rule->rows.end(), row) -
                             rule->rows.begin());
}

}  // namespace

std::vector<const AttentionRow*> RankRows(const std::vector<AttentionRow>& rows,
                                          const AttentionRequest& request, const Target& target,
                                          std::span<const RankRule> rules) {
  struct Keyed {
    size_t platform, position;
    const AttentionRow* row;
    auto Key() const {
      return std::tuple(platform, std::string_view(row->platform), row->verification, position,
                        std::string_view(row->name));
    }
  };
  std::vector<Keyed> keyed;
  keyed.reserve(rows.size());
  for (const AttentionRow& row : rows) {
    size_t platform = static_cast<size_t>(
        std::find(target.platforms.begin(), target.platforms.end(), row.platform) -
        target.platforms.begin());
    size_t position = PositionInRule(FindRule(rules, row.platform, request, target), row.name);
    keyed.push_back({platform, position, &row});
  }
  std::sort(keyed.begin(), keyed.end(),
            [](const Keyed& a, const Keyed& b) { return a.Key() < b.Key(); });
  std::vector<const AttentionRow*> ranked;
  ranked.reserve(keyed.size());
  for (const Keyed& one : keyed) ranked.push_back(one.row);
  return ranked;
}

}  // namespace ashlar
