#include <fmt/format.h>

#include <algorithm>

#include "plan/device_choice.h"
#include "plan/draft.h"
#include "plan/groups.h"

namespace ashlar {
namespace {

// A row that is known but not there lacks its plugin, or the plugin is one that does not work.
Catalogue MakeCatalogue(const Platform& platform) {
  Catalogue catalogue{platform.rows};
  for (const AttentionRow& known : KnownRows()) {
    bool here = std::any_of(platform.rows.begin(), platform.rows.end(),
                            [&](const AttentionRow& row) { return row.name == known.name; });
    if (here) continue;
    catalogue.rows.push_back(known);
    const PlatformProbe* probe = FindProbe(platform, known.platform);
    if (probe != nullptr && probe->outcome == ProbeOutcome::kBroken) {
      catalogue.faults.push_back({known.name, RefusalReason::kLoadFailure, probe->detail});
    } else {
      catalogue.missing.push_back(known.name);
    }
  }
  return catalogue;
}

bool HasStates(const LayerSpec& layer) {
  return !layer.states.empty() &&
         std::all_of(layer.states.begin(), layer.states.end(), [](const StateShape& state) {
           return !state.shape.empty() && std::all_of(state.shape.begin(), state.shape.end(),
                                                      [](int64_t extent) { return extent > 0; });
         });
}

bool HasHeads(const LayerSpec& layer) {
  Retention retention = Info(layer.kind).retention;
  bool bounded = retention != Retention::kWindow && retention != Retention::kChunk;
  return layer.heads > 0 && layer.kv_heads > 0 && layer.head_dim > 0 && layer.head_dim_v >= 0 &&
         layer.heads % layer.kv_heads == 0 && (bounded || layer.window > 0);
}

void CheckLayer(const LayerSpec& layer, size_t index, const Origins& origins, Problems& out) {
  std::string place = origins.Place("source"), next = "mend the model's configuration";
  if (std::none_of(kKinds.begin(), kKinds.end(),
                   [&](const KindInfo& info) { return info.kind == layer.kind; })) {
    std::string known;
    for (const KindInfo& info : kKinds)
      known += (known.empty() ? "" : ", ") + std::string(Name(info.kind));
    out.push_back(
        {place,
         fmt::format("layer {} is of an unknown kind, {}", index, static_cast<int>(layer.kind)),
         known, next});
  } else if (Info(layer.kind).retention == Retention::kState) {
    if (HasStates(layer)) return;
    out.push_back({place, fmt::format("layer {} is recurrent and states no state", index),
                   "one or more states with positive extents", next});
  } else if (!HasHeads(layer)) {
    out.push_back({place,
                   fmt::format("layer {} has {} heads, {} KV heads, head size {}, window {}", index,
                               layer.heads, layer.kv_heads, layer.head_dim, layer.window),
                   "positive sizes, heads a multiple of KV heads, a window for sliding layers",
                   next});
  }
}

void PickThreads(Draft& draft) {
  int usable = draft.selector->target().device.threads, asked = draft.spec.cpu.threads;
  draft.plan.threads = asked > 0 && usable > 0 ? std::min(asked, usable) : std::max(asked, usable);
  if (usable > 0 && asked > usable) {
    draft.plan.notes.push_back(
        fmt::format("{}: {} is more than the {} that this process may use; {} are used",
                    draft.spec.origins.Place("cpu.threads"), asked, usable, usable));
  }
}

}  // namespace

void ReadRequest(Draft& draft) {
  const Spec& spec = draft.spec;
  draft.plan.model_name = spec.name;
  draft.plan.model = draft.model;
  draft.plan.invariant = spec.invariant;
  draft.plan.max_sequences = spec.limits.sequences;
  draft.plan.batch_tokens = spec.limits.batch_tokens;
  draft.plan.spec_digest = spec.digest;
  for (auto [field, size] : {std::pair("parallel.tensor", spec.parallel.tensor),
                             std::pair("parallel.pipeline", spec.parallel.pipeline)}) {
    if (size == 1) continue;
    draft.problems.push_back({spec.origins.Place(field), fmt::format("{} is not usable", size),
                              "1: a plan uses one device", "set it to 1"});
  }
}

void CheckLayers(Draft& draft) {
  for (size_t i = 0; i < draft.model.layers.size(); ++i)
    CheckLayer(draft.model.layers[i], i, draft.spec.origins, draft.problems);
}

void PickDevice(Draft& draft) {
  DeviceChoice choice =
      ChooseDevice(draft.platform, draft.spec.platform, draft.spec.origins.Place("platform"));
  draft.plan.notes.insert(draft.plan.notes.end(), choice.notes.begin(), choice.notes.end());
  if (choice.device < 0) {
    draft.problems.push_back(choice.problem);
    return;
  }
  draft.plan.platform = choice.platform;
  draft.plan.platform_name = draft.platform.name;
  draft.plan.device = choice.device;
  draft.plan.device_number = choice.target.device.index;
  draft.plan.product = choice.target.device.product;
  draft.selector.emplace(MakeCatalogue(draft.platform), std::move(choice.target), kRankRules,
                         draft.spec.origins);
  PickThreads(draft);
}

void MakeGroups(Draft& draft) {
  CacheOptions options;
  options.dtype = ParseDType(draft.spec.kv.dtype)
                      .value_or(AutomaticKvDType(draft.plan.platform, draft.model.weight_dtype));
  options.encoder_tokens = draft.model.encoder_length;
  options.prefix_cache = draft.spec.kv.prefix_cache;
  draft.plan.groups = FormGroups(draft.model.layers, options);
  draft.AddProblems(CheckWishes(draft.spec, draft.selector->catalogue(), draft.plan.groups));
}

}  // namespace ashlar
