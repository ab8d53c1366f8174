#include "catalogue/layouts.h"

#include <algorithm>
#include <array>
#include <set>

namespace ashlar {
namespace {

bool Contains(const std::vector<KvLayout>& list, KvLayout layout) {
  return std::find(list.begin(), list.end(), layout) != list.end();
}

template <class Property>
std::vector<KvLayout> Only(const std::vector<KvLayout>& list, const Property& property) {
  std::vector<KvLayout> kept;
  std::copy_if(list.begin(), list.end(), std::back_inserter(kept), property);
  return kept;
}

bool SameShape(const PageGeometry& a, const PageGeometry& b) {
  return a.head_slots == b.head_slots && a.states == b.states && a.page_bytes == b.page_bytes;
}

// Candidates that can hold these pages.
LayoutError Narrow(const std::vector<ReferenceCachePage>& pages,
                   std::vector<KvLayout>& candidates) {
  auto alike = [&](const auto& same) {
    return std::all_of(pages.begin(), pages.end(),
                       [&](const ReferenceCachePage& cache) { return same(cache, pages.front()); });
  };
  if (alike([](const auto& a, const auto& b) { return SameShape(a.page, b.page); }))
    return LayoutError::kNone;
  candidates = Only(candidates, BlockCompact);
  if (candidates.empty()) return LayoutError::kNotCompact;

  bool one_size =
      alike([](const auto& a, const auto& b) { return a.page.page_bytes == b.page.page_bytes; });
  if (one_size || alike([](const auto& a, const auto& b) { return a.sharded == b.sharded; }))
    return LayoutError::kNone;
  candidates = Only(candidates, BlockOutermost);
  return candidates.empty() ? LayoutError::kNotOutermost : LayoutError::kNone;
}

}  // namespace

std::string_view Label(LayoutError error) {
  constexpr std::array<std::string_view, 13> kLabels = {"",
                                                        "unknown",
                                                        "no_common",
                                                        "disagree",
                                                        "not_compact",
                                                        "not_outermost",
                                                        "not_candidate",
                                                        "recorded",
                                                        "mixed_pages",
                                                        "padded_pieces",
                                                        "padded_split",
                                                        "uneven_split",
                                                        "split_blocks"};
  return kLabels.at(static_cast<size_t>(error));
}

std::optional<KvLayout> ParseReferenceLayout(std::string_view name) {
  for (const LayoutInfo& info : kLayouts) {
    if (Name(info.layout) == name || (!info.alias.empty() && info.alias == name))
      return info.layout;
  }
  return std::nullopt;
}

std::vector<KvLayout> ReferenceCandidates(const std::vector<std::vector<KvLayout>>& lists) {
  std::vector<AttentionRow> rows(lists.size());
  std::vector<const AttentionRow*> pointers;
  for (size_t i = 0; i < lists.size(); ++i) {
    rows[i].layouts = lists[i];
    pointers.push_back(&rows[i]);
  }
  return LayoutCandidates(pointers);
}

LayoutOutcome ResolveReferenceLayout(const ReferenceLayoutRequest& request) {
  if (request.recorded) return {LayoutError::kNone, *request.recorded};
  std::vector<KvLayout> candidates = request.workers.front();
  for (const std::vector<KvLayout>& worker : request.workers) {
    if (worker != candidates) return {LayoutError::kDisagree, {}};
  }
  LayoutError narrowed = Narrow(request.pages, candidates);
  if (narrowed != LayoutError::kNone) return {narrowed, {}};
  if (!request.asked.empty()) {
    std::optional<KvLayout> asked = ParseReferenceLayout(request.asked);
    if (!asked) return {LayoutError::kUnknown, {}};
    if (!Contains(candidates, *asked)) return {LayoutError::kNotCandidate, {}};
    return {LayoutError::kNone, *asked};
  }
  std::optional<KvLayout> preferred = ParseReferenceLayout(request.preferred);
  if (preferred && Contains(candidates, *preferred)) return {LayoutError::kNone, *preferred};
  return {LayoutError::kNone, candidates.front()};
}

LayoutOutcome RecordReferenceLayout(std::optional<KvLayout> recorded, std::string_view name) {
  std::optional<KvLayout> layout = ParseReferenceLayout(name);
  if (!layout) return {LayoutError::kUnknown, {}};
  if (recorded && *recorded != *layout) return {LayoutError::kRecorded, *recorded};
  return {LayoutError::kNone, *layout};
}

LayoutError ExpressReferencePages(KvLayout layout,
                                  const std::vector<std::vector<int64_t>>& groups) {
  std::set<int64_t> sizes;
  for (const std::vector<int64_t>& pages : groups) sizes.insert(pages.begin(), pages.end());
  if (sizes.size() <= 1) return LayoutError::kNone;
  bool able = BlockCompact(layout) && (groups.size() == 1 || !LayerCompact(layout));
  return able ? LayoutError::kNone : LayoutError::kMixedPages;
}

std::string_view OrderInBlock(KvLayout layout) {
  const auto& order = Info(layout).order;
  auto place = [&](KvDim dim) { return std::find(order.begin(), order.end(), dim); };
  if (place(kDimN) < place(kDimH)) return "NHD";
  // Between heads and tokens stand blocks: neither order.
  bool blocks_between = place(kDimH) < place(kDimB) && place(kDimB) < place(kDimN);
  return blocks_between ? "" : "HND";
}

}  // namespace ashlar
