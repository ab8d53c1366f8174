#include "plan/groups.h"

#include <algorithm>
#include <map>

#include "base/checked.h"

namespace ashlar {
namespace {

// What one launch of one row needs to be alike. Rope and scale are run-time arguments.
bool SameGeometry(const LayerSpec& a, const LayerSpec& b) {
  return a.kind == b.kind && a.heads == b.heads && a.kv_heads == b.kv_heads &&
         a.head_dim == b.head_dim && a.head_dim_v == b.head_dim_v && a.window == b.window &&
         a.sinks == b.sinks && a.sparse == b.sparse;
}

std::string WhyNoRow(KvKind kind) {
  return Info(kind).retention == Retention::kState ? "recurrent state: no attention backend"
                                                   : "nothing is cached: no attention backend";
}

std::vector<AttentionGroup> FormAttentionGroups(const std::vector<LayerSpec>& layers,
                                                const std::vector<int>& members) {
  std::vector<AttentionGroup> groups;
  for (int layer : members) {
    const LayerSpec& spec = layers[static_cast<size_t>(layer)];
    auto same = std::find_if(groups.begin(), groups.end(), [&](const AttentionGroup& group) {
      return SameGeometry(group.layer, spec);
    });
    if (same == groups.end()) {
      AttentionGroup group;
      group.index = static_cast<int>(groups.size());
      group.layer = spec;
      if (!NeedsRow(spec.kind)) group.reason = WhyNoRow(spec.kind);
      same = groups.insert(groups.end(), group);
    }
    same->layers.push_back(layer);
  }
  return groups;
}

}  // namespace

std::vector<std::vector<int>> GroupByCache(const std::vector<CacheSpec>& caches) {
  std::vector<std::vector<int>> groups;
  for (size_t i = 0; i < caches.size(); ++i) {
    auto same = std::find_if(groups.begin(), groups.end(), [&](const std::vector<int>& group) {
      return caches[static_cast<size_t>(group.front())] == caches[i];
    });
    if (same == groups.end()) same = groups.insert(groups.end(), std::vector<int>());
    same->push_back(static_cast<int>(i));
  }
  return groups;
}

std::vector<std::string> GroupNames(const std::vector<KvKind>& kinds) {
  std::map<KvKind, int> seen;
  std::vector<std::string> names;
  for (KvKind kind : kinds) {
    std::string name(Name(kind));
    if (int count = ++seen[kind]; count > 1) name += "-" + std::to_string(count);
    names.push_back(std::move(name));
  }
  return names;
}

std::vector<KvGroup> FormGroups(const std::vector<LayerSpec>& layers, const CacheOptions& options) {
  std::vector<CacheSpec> caches;
  caches.reserve(layers.size());
  for (const LayerSpec& layer : layers) caches.push_back(CacheOf(layer, options));

  std::vector<KvGroup> groups;
  std::vector<KvKind> kinds;
  for (std::vector<int>& members : GroupByCache(caches)) {
    const LayerSpec& first = layers[static_cast<size_t>(members.front())];
    KvGroup group;
    group.index = static_cast<int>(groups.size());
    group.kind = first.kind;
    group.dtype = options.dtype;
    group.cache = caches[static_cast<size_t>(members.front())];
    group.window = group.cache.window;
    group.attention = FormAttentionGroups(layers, members);
    group.layers = std::move(members);
    kinds.push_back(group.kind);
    groups.push_back(std::move(group));
  }
  std::vector<std::string> names = GroupNames(kinds);
  for (size_t i = 0; i < groups.size(); ++i) groups[i].name = names[i];
  return groups;
}

EqualSplit SplitEqually(const std::vector<std::vector<int>>& buckets) {
  EqualSplit split;
  if (buckets.empty()) return split;
  auto shorter = [](const auto& a, const auto& b) { return a.size() < b.size(); };
  auto [least, most] = std::minmax_element(buckets.begin(), buckets.end(), shorter);
  int smallest = static_cast<int>(least->size()), largest = static_cast<int>(most->size());
  // Nearly equal buckets pad a little rather than fall into many groups.
  split.group_size = 2 * largest < 3 * smallest ? largest : smallest;

  for (const std::vector<int>& bucket : buckets) {
    int size = static_cast<int>(bucket.size());
    int count = CeilDiv(size, split.group_size);
    for (int first = 0; first < count; ++first) {
      std::vector<int>& group = split.groups.emplace_back();
      for (int i = first; i < size; i += count) group.push_back(bucket[static_cast<size_t>(i)]);
      split.pads.push_back(split.group_size - static_cast<int>(group.size()));
    }
    split.wasted_percent.push_back(100.0 * (count * split.group_size - size) / size);
  }
  return split;
}

}  // namespace ashlar
