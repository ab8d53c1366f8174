// The six physical orders of a KV cache, and which one a plan uses.
//
// Logical order is always [L, B, H, N, C]: layer slot, block, head slot, token, content byte. A
// layout names the physical order, outermost first.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace ashlar {

enum KvDim { kDimL = 0, kDimB, kDimH, kDimN, kDimC };
using KvExtents = std::array<int64_t, 5>;  // [L, B, H, N, C], C in bytes

struct LayoutInfo {
  KvLayout layout;
  std::array<KvDim, 5> order;  // outermost first
  std::string_view alias;      // as other engines call it; "" none
};
inline constexpr std::array<LayoutInfo, 6> kLayouts = {{
    {KvLayout::kLBHNC, {kDimL, kDimB, kDimH, kDimN, kDimC}, "HND"},
    {KvLayout::kLBNHC, {kDimL, kDimB, kDimN, kDimH, kDimC}, "NHD"},
    {KvLayout::kLHBNC, {kDimL, kDimH, kDimB, kDimN, kDimC}, ""},
    {KvLayout::kBLHNC, {kDimB, kDimL, kDimH, kDimN, kDimC}, ""},
    {KvLayout::kBLNHC, {kDimB, kDimL, kDimN, kDimH, kDimC}, ""},
    {KvLayout::kBHLNC, {kDimB, kDimH, kDimL, kDimN, kDimC}, ""},
}};
const LayoutInfo& Info(KvLayout layout);
bool LayerCompact(KvLayout layout);    // L outermost
bool BlockOutermost(KvLayout layout);  // B outermost
bool BlockCompact(KvLayout layout);    // L and B are the two outermost: a page is one run

// Byte strides of the logical dimensions, by a walk from the innermost outwards. `padded_page` > 0
// gives each page that many bytes; empty when it is smaller than the page, when a page lies in
// several pieces and so has no end to pad, or when the size does not fit. A stride in `fixed` that
// is not 0 stands as it is.
std::optional<KvStrides> StridesOf(KvLayout layout, const KvExtents& extents,
                                   int64_t padded_page = 0, const KvStrides& fixed = {});

// Contiguous byte runs that make up one page.
struct PageRuns {
  int64_t count = 0, bytes = 0;
  bool operator==(const PageRuns&) const = default;
};
PageRuns RunsOf(const KvStrides& strides, const KvExtents& extents);

// What a plan file, a capture, a peer or a tier states of one group's pages without a layout's
// name.
struct StatedPages {
  std::string group;
  KvExtents extents{};
  KvStrides strides{};
};
// Pages of one run are read alike whatever the layout is called; a page in several is refused, for
// its heads cannot be told from those of other blocks. `place` opens the message.
Problems CheckUnstatedLayout(const std::vector<StatedPages>& groups, const std::string& place);

// Whether a manager block may be split into kernel blocks: its page must be dense and blocks must
// follow each other without a gap.
bool Splittable(KvLayout layout, const KvExtents& extents, int64_t padded_page = 0);

// Layouts that every row takes, best first: an empty list takes any layout and does not vote, lists
// that are alike keep their order; otherwise their intersection is ordered by how many put a layout
// first, ties by the order of the enum. Without a voter all six, in the default order.
std::vector<KvLayout> LayoutCandidates(const std::vector<const AttentionRow*>& rows);

struct LayoutChoice {
  KvLayout layout = KvLayout::kLBHNC;
  std::string reason;
};
// The first candidate of all rows. `uniform`: all groups have the same [H, N] and page; otherwise
// only block-compact layouts remain, so that every page of every group is one run for tiers and
// peers. `asked` is the user's, and must be a candidate.
Result<LayoutChoice> ResolveLayout(const std::vector<const AttentionRow*>& rows, bool uniform,
                                   std::optional<KvLayout> asked, const std::string& place);

// One arena holds a pool of its own for each KV group, one after the other, each 64-byte aligned;
// inside a pool the layout rules. Sets strides and offsets; returns the arena's
// size, or nothing when it does not fit 64 bits.
std::optional<int64_t> PlaceGroups(std::vector<KvGroup>& groups, KvLayout layout);

}  // namespace ashlar
