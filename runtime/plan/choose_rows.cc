#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "plan/device_choice.h"
#include "plan/draft.h"
#include "plan/layout.h"

namespace ashlar {
namespace {

std::string NameOf(const KvGroup& group, const AttentionGroup& attention) {
  return group.attention.size() == 1 ? group.name
                                     : fmt::format("{} attn {}", group.name, attention.index);
}

// Fields of the spec that alone keep a group without a row.
struct Blocked {
  bool block_size = false, layout = false;
};

void SelectOne(Draft& draft, KvGroup& group, AttentionGroup& attention, Blocked& blocked) {
  ++draft.plan.selector_calls;
  Wish wish = WishFor(draft.spec, group.name, group.kind);
  Selection selection =
      draft.selector->Choose(RequestFor(draft.spec, draft.plan.platform, draft.model.weight_dtype,
                                        attention.layer, group.dtype),
                             wish, NameOf(group, attention));
  attention.requested = selection.requested;
  attention.reason = selection.reason;
  attention.op_driven = selection.outcome == SelectionOutcome::kOpDriven;
  attention.candidates = std::move(selection.candidates);
  draft.plan.notes.insert(draft.plan.notes.end(), selection.notes.begin(), selection.notes.end());

  // A blocked row stands for the group, so that the refusal names sizes that suit all groups.
  const AttentionRow* row = selection.row;
  if (row == nullptr && !selection.blocked.empty()) row = selection.blocked.front();
  blocked.block_size |= selection.blocking_field == "kv.blockSize";
  blocked.layout |= selection.blocking_field == "kv.layout";
  if (!selection.problem.found.empty()) draft.problems.push_back(selection.problem);
  if (row == nullptr) return;
  attention.row = row->name;
  GroupRows& rows = draft.rows[static_cast<size_t>(group.index)];
  if (std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(row);
}

// When every chosen row is of one other plugin (forced, or the last resort), that plugin carries
// out the whole model.
void AdoptPlatform(Draft& draft) {
  std::vector<const AttentionRow*> rows = AllRows(draft.rows);
  if (rows.empty()) return;
  const std::string& platform = rows.front()->platform;
  bool same = std::all_of(rows.begin(), rows.end(),
                          [&](const AttentionRow* row) { return row->platform == platform; });
  int device = DeviceOf(draft.platform, platform);
  if (!same || device < 0) return;
  draft.plan.platform = platform;
  draft.plan.device = device;
  draft.plan.device_number = draft.platform.devices[static_cast<size_t>(device)].index;
}

}  // namespace

AttentionRequest RequestFor(const Spec& spec, const std::string& platform, DType weights,
                            const LayerSpec& layer, DType kv_dtype) {
  AttentionRequest request;
  request.kind = layer.kind;
  request.heads = layer.heads;
  request.kv_heads = layer.kv_heads;
  request.head_dim = layer.head_dim;
  request.head_dim_v = layer.head_dim_v;
  request.window = layer.window;
  request.dtype = ActivationDType(platform, weights);
  request.kv_dtype = kv_dtype;
  request.block_tokens = spec.kv.block_size;
  request.layout = ParseKvLayout(spec.kv.layout);
  request.sinks = layer.sinks;
  request.sparse = layer.sparse;
  request.batch_invariant = spec.invariant;
  return request;
}

std::vector<const AttentionRow*> AllRows(const std::vector<GroupRows>& groups) {
  std::vector<const AttentionRow*> all;
  for (const GroupRows& rows : groups) all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

void SelectRows(Draft& draft) {
  draft.rows.resize(draft.plan.groups.size());
  Blocked blocked;
  for (KvGroup& group : draft.plan.groups) {
    if (!NeedsRow(group.kind)) continue;
    for (AttentionGroup& attention : group.attention) SelectOne(draft, group, attention, blocked);
  }
  const Origins& origins = draft.spec.origins;
  if (blocked.block_size) {
    draft.problems.push_back(
        BlockSizeProblem(origins.Place("kv.blockSize"), draft.spec.kv.block_size, draft.rows));
  }
  if (blocked.layout) {
    Result<LayoutChoice> layout = ResolveLayout(
        AllRows(draft.rows), true, ParseKvLayout(draft.spec.kv.layout), origins.Place("kv.layout"));
    Check(!layout.ok(), "a layout that a row refuses is no candidate");
    draft.AddProblems(layout.problems());
  }
  if (draft.problems.empty()) AdoptPlatform(draft);
}

}  // namespace ashlar
