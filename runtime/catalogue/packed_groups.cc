#include "catalogue/packed_groups.h"

#include <algorithm>

#include "base/checked.h"

namespace ashlar {
namespace {

using Caches = std::vector<ReferenceCache>;
using Members = std::vector<int>;

const ReferenceCache& At(const Caches& layers, int layer) {
  return layers[static_cast<size_t>(layer)];
}
int64_t PageBytes(const Caches& layers, int layer) { return PageOf(At(layers, layer))->page_bytes; }

bool IsFull(KvKind kind) { return kind == KvKind::kFull || kind == KvKind::kMla; }

bool SameType(const ReferenceCache& a, const ReferenceCache& b) {
  if (a.block_tokens != b.block_tokens) return false;
  if (IsFull(a.cache.kind) && IsFull(b.cache.kind)) return true;
  if (a.cache.kind != b.cache.kind) return false;
  switch (Info(a.cache.kind).retention) {
    case Retention::kWindow:
    case Retention::kChunk:
      return a.cache.window == b.cache.window;
    case Retention::kState:
      return PageOf(a)->page_bytes == PageOf(b)->page_bytes &&
             a.cache.state_mode == b.cache.state_mode &&
             a.cache.extra_states == b.cache.extra_states;
    default:
      return false;
  }
}

template <class Same>
std::vector<Members> Buckets(const Members& members, const Same& same) {
  std::vector<Members> buckets;
  for (int layer : members) {
    auto bucket = std::find_if(buckets.begin(), buckets.end(),
                               [&](const Members& b) { return same(b.front(), layer); });
    if (bucket == buckets.end()) bucket = buckets.insert(buckets.end(), Members());
    bucket->push_back(layer);
  }
  return buckets;
}

int64_t BlockBytes(const Caches& layers, const Members& members) {
  int64_t bytes = 0;
  for (int layer : members) bytes += PageBytes(layers, layer);
  return bytes;
}

// One layer of each bucket a set, as many sets as the shortest bucket has layers.
std::vector<Members> SetsOf(const std::vector<Members>& by_size) {
  size_t count = by_size.front().size();
  for (const Members& bucket : by_size) count = std::min(count, bucket.size());
  std::vector<Members> sets(count);
  for (size_t i = 0; i < count; ++i) {
    for (const Members& bucket : by_size) sets[i].push_back(bucket[i]);
  }
  return sets;
}

bool EquallyMany(const std::vector<Members>& by_size) {
  return std::all_of(by_size.begin(), by_size.end(), [&](const Members& bucket) {
    return bucket.size() == by_size.front().size();
  });
}

// Into how many groups a type is split so that a block of each takes no more than `room`.
size_t GroupsFor(const Caches& layers, const Members& members, const std::vector<Members>& by_size,
                 int64_t room) {
  int64_t largest = 0;
  for (int layer : members) largest = std::max(largest, PageBytes(layers, layer));
  auto each = static_cast<size_t>(std::max<int64_t>(room / largest, 1));
  size_t count = CeilDiv(members.size(), each);
  if (by_size.size() == 1) return count;
  if (EquallyMany(by_size) || BlockBytes(layers, members) < room) return 1;
  size_t sets = SetsOf(by_size).size();
  return sets > 1 ? std::min(count, sets) : count;
}

}  // namespace

ReferenceGroup MakeGroup(const Caches& layers, Members members, bool mixed) {
  ReferenceGroup group;
  for (int layer : members) group.caches.push_back(At(layers, layer));
  group.layers = std::move(members);
  group.mixed = mixed;
  return group;
}

bool OfOneType(const Caches& layers, const Members& members) {
  return std::all_of(members.begin(), members.end(), [&](int layer) {
    return SameType(At(layers, members.front()), At(layers, layer));
  });
}

ReferenceGrouping PackGroups(const Caches& layers, const Members& members) {
  std::vector<Members> types =
      Buckets(members, [&](int a, int b) { return SameType(At(layers, a), At(layers, b)); });
  int64_t room = 0;
  for (const Members& type : types) {
    if (IsFull(At(layers, type.front()).cache.kind))
      room = std::max(room, BlockBytes(layers, type));
  }
  ReferenceGrouping grouping;
  for (const Members& type : types) {
    std::vector<Members> by_size =
        Buckets(type, [&](int a, int b) { return PageBytes(layers, a) == PageBytes(layers, b); });
    bool whole = room == 0 || IsFull(At(layers, type.front()).cache.kind);
    size_t count = whole ? 1 : GroupsFor(layers, type, by_size, room);
    if (count == 1) {
      grouping.groups.push_back(MakeGroup(layers, type, true));
      continue;
    }
    std::vector<Members> sets = SetsOf(by_size);
    if (count > sets.size()) return {GroupError::kEmptyGroup, {}};
    for (size_t first = 0; first < count; ++first) {
      Members group;
      for (size_t i = first; i < sets.size(); i += count)
        group.insert(group.end(), sets[i].begin(), sets[i].end());
      grouping.groups.push_back(MakeGroup(layers, std::move(group), true));
    }
  }
  return grouping;
}

}  // namespace ashlar
