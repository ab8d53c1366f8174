// From the requested block size to the one that is used: one manager block for all KV groups, and
// for each group the kernel block that it is split into.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace ashlar {

inline constexpr int kDefaultBlockTokens = 16;
// Larger blocks serve nobody, and a search for one must end.
inline constexpr int64_t kLargestBlock = 1 << 16;

// Rows of one KV group, each once.
using GroupRows = std::vector<const AttentionRow*>;

// Whether the block pool may use blocks of `tokens` with this row: one of its manager rules when it
// has any, else a multiple of one of its kernel blocks (a manager block can be split).
bool SupportsBlock(const AttentionRow& row, int tokens);

// Whether the row's kernel reads blocks of `tokens`.
bool TakesKernelBlock(const AttentionRow& row, int tokens);

// The sizes that the row names, exact or as what a multiple is of: of the manager block when it has
// rules for that, else of the kernel block.
std::vector<int> AdvertisedSizes(const AttentionRow& row);
int SmallestKernelBlock(const AttentionRow& row);  // 0 when it names none

// Least common multiples, up to the largest block, of one size of each list; an empty list stands
// for any size.
std::set<int64_t> CommonMultiples(const std::vector<std::vector<int>>& lists);

// "a multiple of 16", "exactly 48", "a multiple of 32 or 48": what SupportsBlock accepts.
std::string BlockNeed(const AttentionRow& row);

// The row's own preference when `otherwise` is not better: its preferred size, else `otherwise`
// when it accepts that, else its smallest.
int PreferredBlock(const AttentionRow& row, int otherwise);

// The kernel block of one group: `tokens` itself when every row takes it, else the largest exact
// size of any row that divides it and that every row takes.
std::optional<int> KernelBlock(const GroupRows& rows, int tokens);

// Whether every row of every group accepts `tokens` and each group has a kernel block for it.
bool Usable(const std::vector<GroupRows>& groups, int tokens);

// The nearest usable sizes below and above: "16 or 32", "16", or "" when there is none.
std::string NearestBlocks(const std::vector<GroupRows>& groups, int tokens);

// The one refusal of a size that the user states, wherever it was stated.
Problem BlockSizeProblem(const std::string& place, int tokens,
                         const std::vector<GroupRows>& groups);

struct BlockChoice {
  int tokens = 0;
  std::vector<BlockStep> steps;
};
// `requested` 0 is auto: what all rows prefer, else the default when every row accepts it, else the
// smallest least common multiple of one size a row that all accept. Kernel blocks are not looked
// at for a candidate that was preferred, and must exist for the result.
Result<BlockChoice> ChooseBlock(const std::vector<GroupRows>& groups, int requested,
                                const std::string& place);

// Rows that a block size changed after the choice does not suit.
std::vector<std::string> RejectingRows(const std::vector<GroupRows>& groups, int tokens);

// Units that follow from the groups' blocks: prefix reuse works in the greatest common divisor, the
// scheduler in the least common multiple. Empty when the multiple does not fit.
struct Granularity {
  int64_t hash = 0, scheduler = 0;
};
std::optional<Granularity> GranularityOf(const std::vector<int>& group_blocks);

}  // namespace ashlar
