#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "plan/draft.h"
#include "plan/layout.h"

namespace ashlar {
namespace {

bool PagesUniform(const std::vector<KvGroup>& groups) {
  return std::all_of(groups.begin(), groups.end(), [&](const KvGroup& group) {
    return group.head_slots == groups.front().head_slots && group.states == groups.front().states &&
           group.page_bytes == groups.front().page_bytes;
  });
}

void CheckSplit(Draft& draft, const KvGroup& group) {
  if (group.kernel_block_tokens == group.block_tokens) return;
  KvExtents extents = {static_cast<int64_t>(group.layers.size()), 2, group.head_slots, group.states,
                       group.content_bytes};
  if (Splittable(draft.plan.layout, extents, group.page_bytes)) return;
  draft.problems.push_back(
      {draft.spec.origins.Place("kv.layout"),
       fmt::format("{} cannot split blocks of {} into {} in group {}", Name(draft.plan.layout),
                   group.block_tokens, group.kernel_block_tokens, group.name),
       "blocks of one layer that follow each other",
       fmt::format("set kv.blockSize to {}, or kv.layout to LBHNC or LBNHC",
                   group.kernel_block_tokens)});
}

}  // namespace

void PickLayout(Draft& draft) {
  Result<LayoutChoice> choice =
      ResolveLayout(AllRows(draft.rows), PagesUniform(draft.plan.groups),
                    ParseKvLayout(draft.spec.kv.layout), draft.spec.origins.Place("kv.layout"));
  if (!choice.ok()) {
    draft.problems = choice.problems();
    return;
  }
  draft.plan.layout = choice->layout;
  draft.plan.layout_reason = choice->reason;
  for (const KvGroup& group : draft.plan.groups) CheckSplit(draft, group);
}

void PlacePools(Draft& draft) {
  std::optional<int64_t> bytes = PlaceGroups(draft.plan.groups, draft.plan.layout);
  Check(bytes.has_value(),
        "pools that fit the memory fit 64 bits, and pages of one run can be padded");
  draft.plan.memory.kv_bytes = *bytes;
}

}  // namespace ashlar
