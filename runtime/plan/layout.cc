#include "plan/layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/checked.h"
#include "base/nearest.h"

namespace ashlar {
namespace {

// As every plugin aligns its allocations.
constexpr int64_t kPoolAlignment = 64;

// Where no row has a preference.
constexpr KvLayout kDefaultOrder[] = {KvLayout::kLBNHC, KvLayout::kLBHNC, KvLayout::kBLNHC,
                                      KvLayout::kBLHNC, KvLayout::kBHLNC, KvLayout::kLHBNC};

bool OutsidePage(KvDim dim) { return dim == kDimL || dim == kDimB; }

bool Contains(const std::vector<KvLayout>& list, KvLayout layout) {
  return std::find(list.begin(), list.end(), layout) != list.end();
}

std::string Names(const std::vector<KvLayout>& layouts) {
  std::vector<std::string> names;
  for (KvLayout layout : layouts) names.emplace_back(Name(layout));
  return OneOf(names);
}

std::vector<const AttentionRow*> Voters(const std::vector<const AttentionRow*>& rows) {
  std::vector<const AttentionRow*> voters;
  for (const AttentionRow* row : rows) {
    bool seen = std::find(voters.begin(), voters.end(), row) != voters.end();
    if (!row->layouts.empty() && !seen) voters.push_back(row);
  }
  return voters;
}

std::string Takes(const std::vector<const AttentionRow*>& voters) {
  std::string text;
  for (const AttentionRow* row : voters) {
    if (!text.empty()) text += ", ";
    text += fmt::format("{} takes {}", row->name, Names(row->layouts));
  }
  return text;
}

std::string WhyFirst(const std::vector<const AttentionRow*>& voters, size_t candidates) {
  if (voters.empty()) return "default: every backend takes any layout";
  std::vector<std::string> names;
  for (const AttentionRow* row : voters) names.push_back(row->name);
  return fmt::format("first of {} that {} {}", candidates, fmt::join(names, ", "),
                     names.size() == 1 ? "takes" : "take");
}

}  // namespace

const LayoutInfo& Info(KvLayout layout) {
  for (const LayoutInfo& info : kLayouts) {
    if (info.layout == layout) return info;
  }
  Fail("every layout has a row in kLayouts", "");
}

bool LayerCompact(KvLayout layout) { return Info(layout).order[0] == kDimL; }
bool BlockOutermost(KvLayout layout) { return Info(layout).order[0] == kDimB; }
bool BlockCompact(KvLayout layout) {
  const auto& order = Info(layout).order;
  return OutsidePage(order[0]) && OutsidePage(order[1]);
}

std::optional<KvStrides> StridesOf(KvLayout layout, const KvExtents& extents, int64_t padded_page,
                                   const KvStrides& fixed) {
  const auto& order = Info(layout).order;
  KvStrides strides{};
  int64_t running = 1, page = extents[kDimH] * extents[kDimN] * extents[kDimC];
  bool to_pad = padded_page > 0;
  if (to_pad && padded_page < page) return std::nullopt;
  for (size_t i = order.size(); i-- > 0;) {
    KvDim dim = order[i];
    if (to_pad && OutsidePage(dim)) {
      if (running != page) return std::nullopt;  // more of the page lies outside
      running = padded_page;
      to_pad = false;
    }
    strides[dim] = fixed[dim] > 0 ? fixed[dim] : running;
    std::optional<int64_t> next = CheckedMul(strides[dim], extents[dim]);
    if (!next) return std::nullopt;
    running = *next;
  }
  return strides;
}

std::vector<KvLayout> LayoutCandidates(const std::vector<const AttentionRow*>& rows) {
  std::vector<const AttentionRow*> voters = Voters(rows);
  if (voters.empty()) return {std::begin(kDefaultOrder), std::end(kDefaultOrder)};
  const std::vector<KvLayout>& first = voters.front()->layouts;
  bool alike = std::all_of(voters.begin(), voters.end(),
                           [&](const AttentionRow* row) { return row->layouts == first; });
  if (alike) return first;

  std::vector<std::pair<int, KvLayout>> ranked;
  for (const LayoutInfo& info : kLayouts) {
    bool common = std::all_of(voters.begin(), voters.end(), [&](const AttentionRow* row) {
      return Contains(row->layouts, info.layout);
    });
    if (!common) continue;
    auto votes = std::count_if(voters.begin(), voters.end(), [&](const AttentionRow* row) {
      return row->layouts.front() == info.layout;
    });
    ranked.push_back({-static_cast<int>(votes), info.layout});
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<KvLayout> layouts;
  for (const auto& [votes, layout] : ranked) layouts.push_back(layout);
  return layouts;
}

PageRuns RunsOf(const KvStrides& strides, const KvExtents& extents) {
  PageRuns runs{1, extents[kDimC]};
  KvDim inner = kDimN, outer = kDimH;
  if (strides[kDimH] < strides[kDimN]) std::swap(inner, outer);
  for (KvDim dim : {inner, outer}) {
    if (extents[dim] == 1) continue;
    bool joins = runs.count == 1 && strides[dim] == runs.bytes;
    (joins ? runs.bytes : runs.count) *= extents[dim];
  }
  return runs;
}

Problems CheckUnstatedLayout(const std::vector<StatedPages>& groups, const std::string& place) {
  Problems problems;
  for (const StatedPages& pages : groups) {
    PageRuns runs = RunsOf(pages.strides, pages.extents);
    if (runs.count == 1) continue;
    problems.push_back(
        {place,
         fmt::format("no layout is stated, and a block of group {} lies in {} pieces (strides {})",
                     pages.group, runs.count, fmt::join(pages.strides, ", ")),
         "a layout, or blocks of one piece", "state layout: LHBNC or BHLNC"});
  }
  return problems;
}

bool Splittable(KvLayout layout, const KvExtents& extents, int64_t padded_page) {
  int64_t page = extents[kDimH] * extents[kDimN] * extents[kDimC];
  if (padded_page > page) return false;
  std::optional<KvStrides> strides = StridesOf(layout, extents);
  return strides && (*strides)[kDimB] == page;
}

Result<LayoutChoice> ResolveLayout(const std::vector<const AttentionRow*>& rows, bool uniform,
                                   std::optional<KvLayout> asked, const std::string& place) {
  std::vector<const AttentionRow*> voters = Voters(rows);
  std::vector<KvLayout> candidates = LayoutCandidates(rows);
  if (candidates.empty()) {
    return Problem{place, "the backends have no KV cache layout in common", Takes(voters),
                   "choose other backends"};
  }
  if (!uniform) {
    std::vector<KvLayout> all = candidates;
    std::erase_if(candidates, [](KvLayout layout) { return !BlockCompact(layout); });
    if (candidates.empty()) {
      return Problem{place, fmt::format("{} is not usable", Names(all)),
                     "groups whose blocks differ need a block-compact layout: " + Takes(voters),
                     "choose backends that take LBHNC, LBNHC, BLHNC or BLNHC"};
    }
  }
  if (!asked) return LayoutChoice{candidates.front(), WhyFirst(voters, candidates.size())};
  if (!Contains(candidates, *asked)) {
    std::string why = uniform || BlockCompact(*asked)
                          ? Takes(voters)
                          : "groups whose blocks differ need a block-compact layout";
    return Problem{place, fmt::format("{} is not usable", Name(*asked)), why,
                   "use " + Names(candidates)};
  }
  return LayoutChoice{*asked, "kv.layout"};
}

std::optional<int64_t> PlaceGroups(std::vector<KvGroup>& groups, KvLayout layout) {
  int64_t end = 0;
  for (KvGroup& group : groups) {
    const int64_t layers = static_cast<int64_t>(group.layers.size());
    const int64_t pages[] = {layers, group.blocks, group.page_bytes};
    std::optional<KvStrides> strides = StridesOf(
        layout, {layers, group.blocks, group.head_slots, group.states, group.content_bytes},
        group.padded() ? group.page_bytes : 0);
    std::optional<int64_t> bytes = CheckedProduct(pages);
    if (!strides || !bytes) return std::nullopt;
    group.strides = *strides;
    group.offset = RoundUp(end, kPoolAlignment);
    std::optional<int64_t> next = CheckedAdd(group.offset, *bytes);
    if (!next || *next > INT64_MAX - kPoolAlignment) return std::nullopt;
    end = *next;
  }
  return end;
}

}  // namespace ashlar
