#include "catalogue/pools.h"

#include <algorithm>
#include <numeric>

namespace ashlar {
namespace {

// Layers of a group whose caches are equal lie side by side.
std::vector<std::vector<size_t>> Runs(const ReferenceGroup& group) {
  std::vector<std::vector<size_t>> runs;
  for (size_t i = 0; i < group.layers.size(); ++i) {
    auto run = std::find_if(runs.begin(), runs.end(), [&](const std::vector<size_t>& members) {
      return group.caches[members.front()] == group.caches[i];
    });
    if (run == runs.end()) run = runs.insert(runs.end(), std::vector<size_t>());
    run->push_back(i);
  }
  return runs;
}

int64_t PaddedPage(const PageGeometry& page) {
  return page.page_bytes > page.used_bytes ? page.page_bytes : 0;
}

size_t MostLayers(const std::vector<ReferenceGroup>& groups) {
  size_t most = 0;
  for (const ReferenceGroup& group : groups) most = std::max(most, group.layers.size());
  return most;
}

// Groups of equal pages have as many layer slots as the largest of them; runs of a mixed one
// follow each other.
LayoutError PlaceGroup(const ReferenceGroup& group, size_t slots, KvLayout layout,
                       ReferencePool& pool) {
  int64_t offset = 0;
  for (const std::vector<size_t>& run : Runs(group)) {
    PageGeometry page = *PageOf(group.caches[run.front()]);
    auto layers = static_cast<int64_t>(group.mixed ? run.size() : slots);
    std::optional<KvStrides> strides =
        StridesOf(layout, {layers, pool.blocks, page.head_slots, page.states, page.content_bytes},
                  PaddedPage(page));
    if (!strides) return LayoutError::kPaddedPieces;
    ReferencePlacement placement;
    for (size_t member : run) placement.layers.push_back(group.layers[member]);
    placement.size = pool.block_bytes * pool.blocks;
    placement.layer_stride = (*strides)[kDimL];
    placement.block_stride = BlockOutermost(layout) ? pool.block_bytes : (*strides)[kDimB];
    placement.offset = offset;
    offset += page.page_bytes * static_cast<int64_t>(run.size()) *
              (BlockOutermost(layout) ? 1 : pool.blocks);
    pool.placements.push_back(std::move(placement));
  }
  return LayoutError::kNone;
}

std::vector<std::vector<int64_t>> PageSizes(const std::vector<ReferenceGroup>& groups) {
  std::vector<std::vector<int64_t>> sizes;
  for (const ReferenceGroup& group : groups) {
    std::vector<int64_t>& pages = sizes.emplace_back();
    for (const ReferenceCache& cache : group.caches) pages.push_back(PageOf(cache)->page_bytes);
  }
  return sizes;
}

bool OnlyRunningState(const ReferenceGroup& group) {
  const CacheSpec& cache = group.caches.front().cache;
  return Info(cache.kind).retention == Retention::kState && cache.state_mode == StateMode::kRunning;
}

}  // namespace

ReferencePool PlaceReferenceGroups(const std::vector<ReferenceGroup>& groups, KvLayout layout,
                                   int64_t bytes, int64_t blocks) {
  ReferencePool pool;
  if (groups.empty()) return pool;
  pool.error = ExpressReferencePages(layout, PageSizes(groups));
  if (pool.error != LayoutError::kNone) return pool;
  for (const ReferenceGroup& group : groups)
    pool.block_bytes = std::max(pool.block_bytes, group.block_bytes());
  pool.blocks = blocks > 0 ? blocks : bytes / pool.block_bytes;
  for (const ReferenceGroup& group : groups) {
    pool.error = PlaceGroup(group, MostLayers(groups), layout, pool);
    if (pool.error != LayoutError::kNone) return pool;
  }
  return pool;
}

int64_t ReferenceBlocksPerRequest(const ReferenceGroup& group, int64_t length, int64_t in_flight) {
  int64_t most = 0;
  for (const ReferenceCache& cache : group.caches) {
    most = std::max(most, BlocksPerRequest(cache.cache, cache.block_tokens, length, in_flight));
  }
  return most;
}

std::optional<Granularity> ReferenceUnits(const std::vector<ReferenceGroup>& groups,
                                          const ReferenceUnitRequest& request) {
  std::vector<int> blocks;
  for (const ReferenceGroup& group : groups) blocks.push_back(group.block_tokens());
  std::optional<Granularity> units = GranularityOf(blocks);
  if (!units) return std::nullopt;
  // A state that is not kept at block ends can be reused nowhere.
  bool reusable = std::none_of(groups.begin(), groups.end(), OnlyRunningState);
  bool other_unit = request.prefix_unit > 0 && request.prefix_unit != blocks.front();
  if (groups.size() == 1 && request.prefix_cache && other_unit) return std::nullopt;
  if (groups.size() == 1 || !request.prefix_cache || !reusable) {
    units->hash = units->scheduler;
  } else if (request.prefix_unit > 0) {
    if (units->hash % request.prefix_unit != 0) return std::nullopt;
    units->hash = request.prefix_unit;
  }
  return units;
}

ReferenceView ViewOfReference(const ReferenceCache& cache, KvLayout layout, int64_t layers,
                              int64_t blocks, int kernel_block, const KvStrides& fixed) {
  ReferenceView view;
  PageGeometry page = *PageOf(cache);
  int64_t ratio = 1;
  if (kernel_block != cache.block_tokens) {
    if (cache.block_tokens % kernel_block != 0) {
      view.error = LayoutError::kUnevenSplit;
    } else if (PaddedPage(page) > 0 || cache.cache.padded_page > 0) {
      view.error = LayoutError::kPaddedSplit;
    }
    if (view.error != LayoutError::kNone) return view;
    ratio = cache.block_tokens / kernel_block;
  }
  view.extents = {layers, blocks * ratio, page.head_slots, page.states / ratio, page.content_bytes};
  std::optional<KvStrides> strides = StridesOf(layout, view.extents, PaddedPage(page), fixed);
  if (strides) {
    view.strides = *strides;
  } else {
    view.error = LayoutError::kPaddedPieces;
  }
  return view;
}

ReferenceView KernelViewOf(const ReferenceCache& cache, KvLayout layout, int64_t layers,
                           int64_t blocks, int kernel_block, int64_t block_stride) {
  int64_t ratio = cache.block_tokens / kernel_block;
  PageGeometry page = *PageOf(cache);
  if (ratio > 1 && block_stride != page.used_bytes) return {LayoutError::kSplitBlocks, {}, {}};
  return ViewOfReference(cache, layout, layers, blocks, kernel_block, {0, block_stride / ratio});
}

}  // namespace ashlar
