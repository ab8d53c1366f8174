#include "catalogue/reference_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/device_choice.h"
#include "plan/groups.h"
#include "plan/select.h"

namespace ashlar {
namespace {

// vLLM's default share of the device's free memory, for weights and cache.
constexpr int64_t kUsablePercent = 90;

ReferencePlatform PlatformOf(const VllmFacts& facts) {
  if (facts.platform == VllmPlatform::kCpu) return ReferencePlatform::kCpu;
  return facts.platform == VllmPlatform::kXpu ? ReferencePlatform::kXpu : ReferencePlatform::kGpu;
}

// The part of a backend's data that block sizes and layouts are made from.
AttentionRow RowOf(const VllmRow& backend) {
  AttentionRow row;
  row.name = backend.name;
  for (const BlockRule& rule : backend.blocks) {
    if (rule.tokens == 0) break;
    row.kernel_blocks.push_back(rule);
    if (backend.exact_block) row.manager_blocks.push_back(rule);
  }
  row.preferred_block = backend.preferred;
  for (KvLayout layout : backend.layouts) {
    if (layout == KvLayout{}) break;
    row.layouts.push_back(layout);
  }
  return row;
}

// Indexers name their backend themselves; their keys have a cache of their own.
AttentionRow IndexerRow(VllmPlatform platform) {
  AttentionRow row;
  row.name = "DEEPSEEK_V32_INDEXER";
  if (platform == VllmPlatform::kRocm) {
    row.kernel_blocks = {{1, false}, {16, true}};
  } else {
    row.kernel_blocks = {{64, false}};
  }
  return row;
}

std::string WhyNoBlock(const ReferenceBlocks& blocks) {
  if (blocks.rejecting.empty()) return std::string(Label(blocks.error));
  return fmt::format("{} {} {} tokens", fmt::join(blocks.rejecting, ", "),
                     blocks.rejecting.size() == 1 ? "refuses" : "refuse", blocks.tokens);
}

// The plan while it is made.
class Maker {
 public:
  Maker(const Spec& spec, const ModelConfig& model, const WeightFacts& weights,
        const VllmAssume& assume, DeviceChoice device, VllmFacts facts)
      : spec_(spec),
        model_(model),
        weights_(weights),
        assume_(assume),
        device_(std::move(device)),
        facts_(std::move(facts)) {
    options_.dtype =
        ParseDType(spec.kv.dtype).value_or(AutomaticKvDType(device_.platform, model.weight_dtype));
    options_.encoder_tokens = model.encoder_length;
    options_.prefix_cache = spec.kv.prefix_cache;
  }

  ReferencePlan Make() {
    plan_.product = device_.target.device.product;
    for (auto step : {&Maker::Select, &Maker::SolveBlocks, &Maker::PickLayout, &Maker::Group}) {
      if (!(this->*step)()) break;
    }
    return std::move(plan_);
  }

 private:
  // The first failure stays.
  bool Fail(const char* step, std::string why) {
    if (plan_.failed.empty()) {
      plan_.failed = step;
      plan_.why = std::move(why);
    }
    return false;
  }

  bool Select() {
    rows_.reserve(model_.layers.size() + 1);
    for (const KvGroup& group : FormGroups(model_.layers, options_)) {
      Wish wish = WishFor(spec_, group.name, group.kind);
      for (const AttentionGroup& attention : group.attention) {
        ReferenceAttention& made = plan_.attention.emplace_back();
        made = {group.name, attention.layer, attention.layers, {}, 0};
        if (Info(group.kind).retention == Retention::kState) continue;  // no attention backend
        VllmRequest request = VllmRequestOf(
            RequestFor(spec_, device_.platform, model_.weight_dtype, attention.layer, group.dtype),
            assume_);
        bool known = FindVllmRow(wish.use, facts_, request).has_value();
        made.choice = VllmSelect(facts_, request, known ? wish.use : "");
        if (made.choice.error != VllmError::kNone)
          Fail("backends", std::string(Name(made.choice.error)));
        KeepRow(made, request);
      }
    }
    return plan_.failed.empty();
  }

  void KeepRow(const ReferenceAttention& attention, const VllmRequest& request) {
    std::optional<VllmRow> backend = FindVllmRow(attention.choice.chosen, facts_, request);
    if (!backend || !NeedsRow(attention.layer.kind)) return;
    bool seen = std::any_of(rows_.begin(), rows_.end(), [&](const AttentionRow& row) {
      return row.name == attention.choice.chosen;
    });
    if (!seen) rows_.push_back(RowOf(*backend));
    if (!seen && attention.layer.indexer_bytes > 0) rows_.push_back(IndexerRow(facts_.platform));
  }

  GroupRows Rows() const {
    GroupRows rows;
    for (const AttentionRow& row : rows_) rows.push_back(&row);
    return rows;
  }

  // Largest page of one token among attention layers, and of one state.
  bool SolveBlocks() {
    ReferenceBlockRequest request;
    request.platform = PlatformOf(facts_);
    request.rows = Rows();
    request.requested = spec_.kv.block_size;
    for (const LayerSpec& layer : model_.layers) {
      std::optional<PageGeometry> page = PageOf(CacheOf(layer, options_), 1);
      if (Info(layer.kind).retention == Retention::kNothing) continue;
      if (!page) return Fail("blocks", "a layer's page has no size");
      bool state = Info(layer.kind).retention == Retention::kState;
      int64_t& bytes = state ? request.state_page : request.token_bytes;
      bytes = std::max(bytes, page->page_bytes);
      request.latent |= Info(layer.kind).latent;
      request.gated_delta |= state && layer.states.size() > 1 && layer.states[1].shape.size() > 2;
    }
    if (request.token_bytes == 0) request.state_page = 0;  // not a hybrid model
    request.aligned_states = spec_.kv.prefix_cache;
    plan_.blocks = ReferenceBlocksFor(request);
    if (plan_.blocks.error != BlockError::kNone) return Fail("blocks", WhyNoBlock(plan_.blocks));
    for (const AttentionRow& row : rows_) {
      std::optional<int> kernel = KernelBlock({&row}, plan_.blocks.tokens);
      if (!kernel) return Fail("blocks", row.name + " has no kernel block for it");
      for (ReferenceAttention& attention : plan_.attention) {
        if (attention.choice.chosen == row.name) attention.kernel_block_tokens = *kernel;
      }
    }
    return true;
  }

  bool PickLayout() {
    ReferenceLayoutRequest request;
    std::vector<std::vector<KvLayout>> lists;
    for (const AttentionRow& row : rows_) lists.push_back(row.layouts);
    request.workers = {ReferenceCandidates(lists)};
    request.asked = spec_.kv.layout == "auto" ? "" : spec_.kv.layout;
    for (const ReferenceCache& cache : Caches()) {
      if (std::optional<PageGeometry> page = PageOf(cache)) request.pages.push_back({*page, true});
    }
    plan_.layout = ResolveReferenceLayout(request);
    return plan_.layout.error == LayoutError::kNone ||
           Fail("layout", std::string(Label(plan_.layout.error)));
  }

  // Of the layers that cache anything.
  std::vector<ReferenceCache> Caches() {
    std::vector<ReferenceCache> caches;
    cached_layers_.clear();
    for (const LayerSpec& layer : model_.layers) {
      if (Info(layer.kind).retention == Retention::kNothing) continue;
      ReferenceCache cache{CacheOf(layer, options_), plan_.blocks.tokens, 0, false};
      cached_layers_.push_back(static_cast<int>(&layer - model_.layers.data()));
      if (layer.indexer_bytes > 0) {
        caches.push_back(cache);
        caches.back().cache.content_bytes = layer.indexer_bytes;
        cached_layers_.push_back(cached_layers_.back());
        *cache.cache.content_bytes -= layer.indexer_bytes;
      }
      if (Info(layer.kind).retention == Retention::kState) {
        cache.cache.padded_page = plan_.blocks.state_page;
        if (plan_.blocks.state_tokens > 0) cache.block_tokens = plan_.blocks.state_tokens;
      }
      caches.push_back(std::move(cache));
    }
    return caches;
  }

  bool Group() {
    plan_.grouping = GroupLikeReference(Caches(), plan_.layout.layout, true);
    if (plan_.grouping.error != GroupError::kNone)
      return Fail("groups", std::string(Label(plan_.grouping.error)));
    int64_t usable = device_.target.device.free_bytes / 100 * kUsablePercent - weights_.bytes;
    plan_.pool = PlaceReferenceGroups(plan_.grouping.groups, plan_.layout.layout,
                                      std::max<int64_t>(usable, 0));
    if (plan_.pool.error != LayoutError::kNone)
      return Fail("pool", std::string(Label(plan_.pool.error)));
    if (plan_.pool.blocks < 1) return Fail("pool", "not one block fits beside the weights");
    std::optional<Granularity> units =
        ReferenceUnits(plan_.grouping.groups, {spec_.kv.prefix_cache, 0});
    if (!units) return Fail("units", "the groups' blocks have no common unit");
    plan_.units = *units;
    for (ReferenceGroup& group : plan_.grouping.groups) {
      for (int& layer : group.layers) layer = cached_layers_[static_cast<size_t>(layer)];
    }
    return true;
  }

  const Spec& spec_;
  const ModelConfig& model_;
  const WeightFacts& weights_;
  const VllmAssume& assume_;
  DeviceChoice device_;
  VllmFacts facts_;
  CacheOptions options_;
  std::vector<AttentionRow> rows_;  // of the chosen backends that read blocks, each once
  std::vector<int> cached_layers_;  // model layer of each cache
  ReferencePlan plan_;
};

}  // namespace

Result<ReferencePlan> PlanLikeReference(const Spec& spec, const Platform& platform,
                                        const ModelConfig& model, const WeightFacts& weights,
                                        const VllmAssume& assume) {
  DeviceChoice device = ChooseAnyDevice(platform, spec.platform, spec.origins.Place("platform"));
  if (device.device < 0) return device.problem;
  Result<VllmFacts> facts = VllmFactsOf(device.target.device, assume);
  if (!facts) return facts.problems();
  ReferencePlan plan =
      Maker(spec, model, weights, assume, std::move(device), std::move(*facts)).Make();
  plan.model_name = spec.name;
  plan.platform_name = platform.name;
  return plan;
}

}  // namespace ashlar
