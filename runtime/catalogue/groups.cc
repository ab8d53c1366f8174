#include "catalogue/groups.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/checked.h"
#include "catalogue/packed_groups.h"
#include "plan/groups.h"

namespace ashlar {
namespace {

using Caches = std::vector<ReferenceCache>;

ReferenceGrouping Refuse(GroupError error) { return {error, {}}; }

std::vector<int> AllOf(const Caches& layers) {
  std::vector<int> all(layers.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

int64_t PageBytes(const ReferenceCache& cache) { return PageOf(cache)->page_bytes; }

bool AllEqual(const Caches& layers) {
  return std::all_of(layers.begin(), layers.end(),
                     [&](const ReferenceCache& cache) { return cache == layers.front(); });
}

// The one value of several that may be unset; -1 when two differ.
int Only(const Caches& layers, int (*value)(const ReferenceCache&)) {
  int only = 0;
  for (const ReferenceCache& cache : layers) {
    int own = value(cache);
    if (own == 0) continue;
    if (only != 0 && own != only) return -1;
    only = own;
  }
  return only;
}

// Full layers that differ in what they once were are one: with its window and its chunk.
GroupError MergeFull(Caches& layers) {
  bool full = std::all_of(layers.begin(), layers.end(), [](const ReferenceCache& cache) {
    return cache.cache.kind == KvKind::kFull;
  });
  if (!full) return GroupError::kNone;
  int window = Only(layers, [](const ReferenceCache& cache) { return cache.cache.window; });
  int chunk = Only(layers, [](const ReferenceCache& cache) { return cache.chunk; });
  if (window < 0 || chunk < 0) return GroupError::kWindows;
  Caches merged = layers;
  for (ReferenceCache& cache : merged) {
    cache.cache.window = window;
    cache.chunk = chunk;
  }
  if (AllEqual(merged)) layers = std::move(merged);
  return GroupError::kNone;
}

GroupError Promote(Caches& layers) {
  for (ReferenceCache& cache : layers) {
    switch (cache.cache.kind) {
      case KvKind::kSliding:
        cache.cache.kind = KvKind::kFull;
        break;
      case KvKind::kChunkedLocal:
        cache.cache.kind = KvKind::kFull;
        cache.chunk = std::exchange(cache.cache.window, 0);
        break;
      case KvKind::kSlidingMla:
        return GroupError::kUnknown;
      default:
        break;
    }
  }
  GroupError merged = MergeFull(layers);
  if (merged != GroupError::kNone) return merged;
  return AllEqual(layers) || OfOneType(layers, AllOf(layers)) ? GroupError::kNone
                                                              : GroupError::kPromotion;
}

bool CanBePadded(const ReferenceCache& cache) { return !Info(cache.cache.kind).latent; }

// Pages of the largest size: states are padded, blocks of others grow, and what is left is padded.
GroupError MakePagesEqual(Caches& layers, const std::vector<int>& members) {
  int64_t largest = 0;
  for (int layer : members)
    largest = std::max(largest, PageBytes(layers[static_cast<size_t>(layer)]));
  for (int layer : members) {
    ReferenceCache& cache = layers[static_cast<size_t>(layer)];
    int64_t page = PageBytes(cache);
    if (page == largest) continue;
    if (cache.cache.kind != KvKind::kMamba && largest % page == 0) {
      cache.block_tokens *= static_cast<int>(largest / page);
    } else if (CanBePadded(cache)) {
      cache.cache.padded_page = largest;
    } else {
      return GroupError::kPages;
    }
  }
  return GroupError::kNone;
}

// Buckets of equal caches, split so that all groups have about equally many layers.
std::vector<ReferenceGroup> SplitBuckets(const Caches& layers, const std::vector<int>& members) {
  std::vector<std::vector<int>> buckets;
  for (int layer : members) {
    auto same = std::find_if(buckets.begin(), buckets.end(), [&](const std::vector<int>& bucket) {
      return layers[static_cast<size_t>(bucket.front())] == layers[static_cast<size_t>(layer)];
    });
    if (same == buckets.end()) same = buckets.insert(buckets.end(), std::vector<int>());
    same->push_back(layer);
  }
  std::vector<ReferenceGroup> groups;
  for (std::vector<int>& group : SplitEqually(buckets).groups)
    groups.push_back(MakeGroup(layers, std::move(group), false));
  return groups;
}

// The largest block of hidden states that divides the others' block and whose page fits into
// `room`.
void CutHidden(ReferenceCache& cache, int block, int64_t room) {
  for (int tokens = block; tokens >= 1; --tokens) {
    cache.block_tokens = tokens;
    if (block % tokens == 0 && PageBytes(cache) <= room) return;
  }
}

// Hidden states follow the other groups: beside packed ones they need only fit into a block, else
// their page is padded to the one that all have.
GroupError AddHidden(const Caches& layers, int layer, bool packed, ReferenceGrouping& grouping) {
  int block = grouping.groups.front().block_tokens();
  int64_t room = PageBytes(grouping.groups.front().caches.front());
  for (const ReferenceGroup& group : grouping.groups) {
    block = std::min(block, group.block_tokens());
    if (packed) room = std::max(room, group.block_bytes());
  }
  ReferenceCache cache = layers[static_cast<size_t>(layer)];
  CutHidden(cache, block, room);
  if (!packed && PageBytes(cache) > room) return GroupError::kPages;
  if (!packed) cache.cache.padded_page = room;
  grouping.groups.push_back({{layer}, {cache}, false});
  return GroupError::kNone;
}

bool PagesDiffer(const Caches& layers, const std::vector<int>& members) {
  return std::any_of(members.begin(), members.end(), [&](int layer) {
    return PageBytes(layers[static_cast<size_t>(layer)]) !=
           PageBytes(layers[static_cast<size_t>(members.front())]);
  });
}

ReferenceGrouping GroupHybrid(Caches layers, KvLayout layout) {
  std::vector<int> hidden, rest;
  for (int layer : AllOf(layers))
    (layers[static_cast<size_t>(layer)].hidden ? hidden : rest).push_back(layer);
  if (rest.empty()) rest.swap(hidden);

  ReferenceGrouping grouping;
  bool packed = BlockOutermost(layout) && PagesDiffer(layers, rest);
  if (packed) {
    grouping = PackGroups(layers, rest);
  } else {
    grouping.error = MakePagesEqual(layers, rest);
    if (grouping.error == GroupError::kNone) grouping.groups = SplitBuckets(layers, rest);
  }
  for (int layer : hidden) {
    if (grouping.error == GroupError::kNone)
      grouping.error = AddHidden(layers, layer, packed, grouping);
  }
  return grouping.error == GroupError::kNone ? grouping : Refuse(grouping.error);
}

}  // namespace

std::optional<PageGeometry> PageOf(const ReferenceCache& cache) {
  return PageOf(cache.cache, cache.block_tokens);
}

int64_t ReferenceGroup::block_bytes() const {
  int64_t bytes = 0;
  for (const ReferenceCache& cache : caches) bytes += PageBytes(cache);
  return bytes;
}

std::string_view Label(GroupError error) {
  constexpr std::array<std::string_view, 7> kLabels = {
      "", "no_page", "promotion", "windows", "unknown", "pages", "empty_group"};
  return kLabels.at(static_cast<size_t>(error));
}

ReferenceGrouping GroupLikeReference(const Caches& given, KvLayout layout, bool hybrid) {
  if (given.empty()) return {};
  for (const ReferenceCache& cache : given) {
    if (!PageOf(cache)) return Refuse(GroupError::kNoPage);
  }
  Caches layers = given;
  std::vector<int> all = AllOf(layers);
  if (!hybrid && !AllEqual(layers) && !OfOneType(layers, all)) {
    GroupError error = Promote(layers);
    if (error != GroupError::kNone) return Refuse(error);
  }
  if (AllEqual(layers)) return {GroupError::kNone, {MakeGroup(layers, all, false)}};
  if (OfOneType(layers, all)) return {GroupError::kNone, {MakeGroup(layers, all, true)}};
  return GroupHybrid(std::move(layers), layout);
}

}  // namespace ashlar
