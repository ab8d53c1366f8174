#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "model/forward.h"
#include "plan/block_size.h"
#include "plan/device_choice.h"
#include "plan/groups.h"
#include "plan/hash.h"
#include "plan/layout.h"
#include "plan/memory.h"
#include "plan/select.h"
#include "plan/shapes.h"

namespace ashlar {
namespace {

// The plan while it is made: inputs, what earlier steps found out, and every problem so far.
struct Draft {
  const Spec& spec;
  const Platform& platform;
  const ModelConfig& model;
  const WeightFacts& weights;

  Plan plan;
  Target target;
  Catalogue catalogue;
  std::vector<GroupRows> rows;  // by KV group: the chosen rows, each once
  Problems problems;
};

Catalogue MakeCatalogue(const Platform& platform) {
  Catalogue catalogue{platform.rows, {}};
  for (const AttentionRow& known : KnownRows()) {
    bool here = std::any_of(platform.rows.begin(), platform.rows.end(),
                            [&](const AttentionRow& row) { return row.name == known.name; });
    if (here) continue;
    catalogue.rows.push_back(known);
    catalogue.missing.push_back(known.name);
  }
  return catalogue;
}

void CheckLayer(const LayerSpec& layer, size_t index, const Origins& origins, Problems& out) {
  bool window = Info(layer.kind).retention != Retention::kWindow || layer.window > 0;
  bool whole = layer.heads > 0 && layer.kv_heads > 0 && layer.head_dim > 0 &&
               layer.head_dim_v >= 0 && layer.heads % std::max(layer.kv_heads, 1) == 0;
  if (window && whole) return;
  out.push_back({origins.Place("source"),
                 fmt::format("layer {} has {} heads, {} KV heads, head size {}, window {}", index,
                             layer.heads, layer.kv_heads, layer.head_dim, layer.window),
                 "positive sizes, heads a multiple of KV heads, a window for sliding layers",
                 "mend the model's configuration"});
}

void ReadRequest(Draft& draft) {
  const Spec& spec = draft.spec;
  draft.plan.model_name = spec.name;
  draft.plan.model = draft.model;
  draft.plan.invariant = spec.invariant;
  draft.plan.max_sequences = spec.limits.sequences;
  draft.plan.batch_tokens = spec.limits.batch_tokens;
  draft.plan.spec_digest = spec.digest;
  draft.catalogue = MakeCatalogue(draft.platform);
  for (size_t i = 0; i < draft.model.layers.size(); ++i)
    CheckLayer(draft.model.layers[i], i, spec.origins, draft.problems);
  for (auto [field, size] : {std::pair("parallel.tensor", spec.parallel.tensor),
                             std::pair("parallel.pipeline", spec.parallel.pipeline)}) {
    if (size == 1) continue;
    draft.problems.push_back({spec.origins.Place(field), fmt::format("{} is not usable", size),
                              "1: a plan uses one device", "set it to 1"});
  }
}

void PickThreads(Draft& draft) {
  int usable = draft.target.device.threads, asked = draft.spec.cpu.threads;
  draft.plan.threads = asked > 0 && usable > 0 ? std::min(asked, usable) : std::max(asked, usable);
  if (usable > 0 && asked > usable) {
    draft.plan.notes.push_back(
        fmt::format("{}: {} is more than the {} that this process may use; {} are used",
                    draft.spec.origins.Place("cpu.threads"), asked, usable, usable));
  }
}

void PickDevice(Draft& draft) {
  DeviceChoice choice =
      ChooseDevice(draft.platform, draft.spec.platform, draft.spec.origins.Place("platform"));
  draft.plan.notes.insert(draft.plan.notes.end(), choice.notes.begin(), choice.notes.end());
  if (choice.device < 0) {
    draft.problems.push_back(choice.problem);
    return;
  }
  draft.target = choice.target;
  draft.plan.platform = choice.platform;
  draft.plan.platform_name = draft.platform.name;
  draft.plan.device = choice.device;
  draft.plan.device_number = choice.target.device.index;
  draft.plan.product = choice.target.device.product;
  PickThreads(draft);
}

void MakeGroups(Draft& draft) {
  std::optional<DType> asked = ParseDType(draft.spec.kv.dtype);
  DType dtype = asked.value_or(AutomaticKvDType(draft.plan.platform, draft.model.weight_dtype));
  draft.plan.groups = FormGroups(draft.model.layers, dtype);
  Problems wishes = CheckWishes(draft.spec, draft.catalogue, draft.plan.groups);
  draft.problems.insert(draft.problems.end(), wishes.begin(), wishes.end());
}

AttentionRequest RequestOf(const Draft& draft, const KvGroup& group, const LayerSpec& layer) {
  AttentionRequest request;
  request.kind = layer.kind;
  request.heads = layer.heads;
  request.kv_heads = layer.kv_heads;
  request.head_dim = layer.head_dim;
  request.head_dim_v = layer.head_dim_v;
  request.window = layer.window;
  request.dtype = ActivationDType(draft.plan.platform, draft.model.weight_dtype);
  request.kv_dtype = group.dtype;
  request.block_tokens = draft.spec.kv.block_size;
  request.layout = ParseKvLayout(draft.spec.kv.layout);
  request.batch_invariant = draft.spec.invariant;
  return request;
}

std::string NameOf(const KvGroup& group, const AttentionGroup& attention) {
  return group.attention.size() == 1 ? group.name
                                     : fmt::format("{} attn {}", group.name, attention.index);
}

// Fields of the spec that alone keep a group without a row.
struct Blocked {
  bool block_size = false, layout = false;
};

void SelectOne(Draft& draft, KvGroup& group, AttentionGroup& attention, Blocked& blocked) {
  Wish wish = WishFor(draft.spec, group.name, group.kind);
  Selection selection =
      Select(draft.catalogue, RequestOf(draft, group, attention.layer), draft.target, wish,
             kRankRules, NameOf(group, attention), draft.spec.origins);
  attention.requested = selection.requested;
  attention.reason = selection.reason;
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

std::vector<const AttentionRow*> AllRows(const std::vector<GroupRows>& groups) {
  std::vector<const AttentionRow*> all;
  for (const GroupRows& rows : groups) all.insert(all.end(), rows.begin(), rows.end());
  return all;
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

void SelectRows(Draft& draft) {
  draft.rows.resize(draft.plan.groups.size());
  Blocked blocked;
  for (KvGroup& group : draft.plan.groups) {
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
    draft.problems.insert(draft.problems.end(), layout.problems().begin(), layout.problems().end());
  }
  if (draft.problems.empty()) AdoptPlatform(draft);
}

void SolveBlocks(Draft& draft) {
  Result<BlockChoice> choice =
      ChooseBlock(draft.rows, draft.spec.kv.block_size, draft.spec.origins.Place("kv.blockSize"));
  if (!choice.ok()) {
    draft.problems = choice.problems();
    return;
  }
  std::vector<int> blocks;
  for (KvGroup& group : draft.plan.groups) {
    const GroupRows& rows = draft.rows[static_cast<size_t>(group.index)];
    group.block_tokens = choice->tokens;
    group.kernel_block_tokens = KernelBlock(rows, choice->tokens).value_or(0);
    Check(group.kernel_block_tokens > 0, "a chosen block size has a kernel block in every group");
    group.block_steps = choice->steps;
    group.block_steps.push_back(
        {"kernel", group.kernel_block_tokens,
         group.kernel_block_tokens == group.block_tokens
             ? "the kernel takes it whole"
             : fmt::format("{} a block", group.block_tokens / group.kernel_block_tokens)});
    blocks.push_back(group.block_tokens);
  }
  std::optional<Granularity> units = GranularityOf(blocks);
  draft.plan.hash_block_tokens = units ? static_cast<int>(units->hash) : 0;
  draft.plan.scheduler_block_tokens = units ? static_cast<int>(units->scheduler) : 0;
}

// The page by the spec's arithmetic alone; the rows' own declarations are compared with it later.
void SizePages(Draft& draft) {
  for (KvGroup& group : draft.plan.groups) {
    std::optional<PageGeometry> page =
        PageOf(CacheOf(group.attention.front().layer, group.dtype), group.block_tokens);
    std::optional<int64_t> block =
        page ? CheckedMul(page->page_bytes, static_cast<int64_t>(group.layers.size()))
             : std::nullopt;
    if (!block) {
      draft.problems.push_back({"group " + group.name, "the page of a block has no size",
                                "sizes that fit 64 bits", "mend the model's configuration"});
      continue;
    }
    group.head_slots = page->head_slots;
    group.states = page->states;
    group.content_bytes = page->content_bytes;
    group.page_bytes = page->page_bytes;
  }
}

bool PagesUniform(const std::vector<KvGroup>& groups) {
  return std::all_of(groups.begin(), groups.end(), [&](const KvGroup& group) {
    return group.head_slots == groups.front().head_slots && group.states == groups.front().states &&
           group.page_bytes == groups.front().page_bytes;
  });
}

void PickLayout(Draft& draft) {
  std::string place = draft.spec.origins.Place("kv.layout");
  Result<LayoutChoice> choice = ResolveLayout(AllRows(draft.rows), PagesUniform(draft.plan.groups),
                                              ParseKvLayout(draft.spec.kv.layout), place);
  if (!choice.ok()) {
    draft.problems = choice.problems();
    return;
  }
  draft.plan.layout = choice->layout;
  draft.plan.layout_reason = choice->reason;
  for (const KvGroup& group : draft.plan.groups) {
    KvExtents extents = {static_cast<int64_t>(group.layers.size()), 2, group.head_slots,
                         group.states, group.content_bytes};
    if (group.kernel_block_tokens == group.block_tokens || Splittable(choice->layout, extents))
      continue;
    draft.problems.push_back(
        {place,
         fmt::format("{} cannot split blocks of {} into {} in group {}", Name(choice->layout),
                     group.block_tokens, group.kernel_block_tokens, group.name),
         "blocks of one layer that follow each other",
         fmt::format("set kv.blockSize to {}, or kv.layout to LBHNC or LBNHC",
                     group.kernel_block_tokens)});
  }
}

void SizePools(Draft& draft) {
  int64_t workspace =
      ForwardWorkspaceBytes(draft.model, draft.plan.batch_tokens, draft.plan.max_sequences);
  draft.problems =
      SizeMemory(draft.plan, draft.spec, draft.target.device, draft.weights.bytes, workspace);
}

void PlacePools(Draft& draft) {
  std::optional<int64_t> bytes = PlaceGroups(draft.plan.groups, draft.plan.layout);
  Check(bytes.has_value(), "pools that fit the memory fit 64 bits");
  draft.plan.memory.kv_bytes = *bytes;
}

void CompareShapes(Draft& draft) {
  draft.problems = CheckDeclaredShapes(draft.plan, draft.catalogue.rows);
}

void HashPlan(Draft& draft) { draft.plan.hash = PlanHash(draft.plan); }

// When to stop after a step: kGoOn leaves problems for later steps to add to.
enum class After { kGoOn, kStopIfNew, kStopIfAny };

struct Step {
  std::string_view check;  // readiness check that its problems belong to
  void (*run)(Draft&);
  After after;
};

// One a line, in this order: groups, backends, block size, layout, memory, shapes.
constexpr Step kSteps[] = {
    {"source", ReadRequest, After::kGoOn},         //
    {"platform", PickDevice, After::kStopIfNew},   // nothing can be judged without a device
    {"backends", MakeGroups, After::kGoOn},        //
    {"backends", SelectRows, After::kStopIfAny},   // problems of all groups, then stop
    {"blocks", SolveBlocks, After::kStopIfAny},    //
    {"blocks", SizePages, After::kStopIfAny},      //
    {"blocks", PickLayout, After::kStopIfAny},     //
    {"blocks", SizePools, After::kStopIfAny},      //
    {"blocks", PlacePools, After::kStopIfAny},     //
    {"shapes", CompareShapes, After::kStopIfAny},  // last: it looks at everything above
    {"shapes", HashPlan, After::kStopIfAny},       //
};

}  // namespace

PlanAttempt TryPlan(const Spec& spec, const Platform& platform, const ModelConfig& model,
                    const WeightFacts& weights) {
  Draft draft{spec, platform, model, weights, {}, {}, {}, {}, {}};
  PlanAttempt attempt;
  for (const Step& step : kSteps) {
    size_t before = draft.problems.size();
    step.run(draft);
    bool added = draft.problems.size() > before;
    if (added && attempt.check.empty()) attempt.check = step.check;
    if (step.after == After::kStopIfNew && added) break;
    if (step.after == After::kStopIfAny && !draft.problems.empty()) break;
  }
  if (draft.problems.empty()) {
    attempt.plan = std::move(draft.plan);
  } else {
    attempt.problems = std::move(draft.problems);
  }
  return attempt;
}

Result<Plan> MakePlan(const Spec& spec, const Platform& platform, const ModelConfig& model,
                      const WeightFacts& weights) {
  PlanAttempt attempt = TryPlan(spec, platform, model, weights);
  if (attempt.plan) return std::move(*attempt.plan);
  return std::move(attempt.problems);
}

}  // namespace ashlar
