// Layers -> KV groups -> attention groups. Every layer stands in exactly one of each.
#pragma once

#include <string>
#include <vector>

#include "plan/cache_spec.h"
#include "plan/plan.h"

namespace ashlar {

// Indices of equal caches, in the order in which each cache is first seen: one block table serves
// them. Caches that differ in anything (window, heads, head size, dtype) never share one.
std::vector<std::vector<int>> GroupByCache(const std::vector<CacheSpec>& caches);

// A name for each group: its kind, with -2, -3 when the kind was there before.
std::vector<std::string> GroupNames(const std::vector<KvKind>& kinds);

// The KV groups of a model with their attention groups (equal geometry and query heads), layers
// and names filled in; nothing is chosen yet.
// Layers that need no row (NeedsRow) have their attention group too, with the reason.
std::vector<KvGroup> FormGroups(const std::vector<LayerSpec>& layers, const CacheOptions& options);

// Equal groups for pools in which every block id may belong to any group, so that all groups must
// take equally many layers: each bucket becomes ceil(n / size) groups, filled strided.
struct EqualSplit {
  int group_size = 0;
  std::vector<std::vector<int>> groups;
  std::vector<int> pads;               // empty slots of each group
  std::vector<double> wasted_percent;  // of each bucket
};
EqualSplit SplitEqually(const std::vector<std::vector<int>>& buckets);

}  // namespace ashlar
