#include "plan/block_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "base/nearest.h"

namespace ashlar {
namespace {

std::vector<const AttentionRow*> Distinct(const std::vector<GroupRows>& groups) {
  std::vector<const AttentionRow*> rows;
  for (const GroupRows& group : groups) {
    for (const AttentionRow* row : group) {
      if (std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(row);
    }
  }
  return rows;
}

bool AllSupport(const std::vector<const AttentionRow*>& rows, int tokens) {
  return std::all_of(rows.begin(), rows.end(),
                     [&](const AttentionRow* row) { return SupportsBlock(*row, tokens); });
}

std::vector<std::vector<int>> SizeLists(const std::vector<const AttentionRow*>& rows) {
  std::vector<std::vector<int>> lists;
  for (const AttentionRow* row : rows) lists.push_back(AdvertisedSizes(*row));
  return lists;
}

// "A needs a multiple of 16; B and C need exactly 48" with a comma between them.
std::string Needs(const std::vector<const AttentionRow*>& rows) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_need;
  for (const AttentionRow* row : rows) {
    std::string need = BlockNeed(*row);
    auto same = std::find_if(by_need.begin(), by_need.end(),
                             [&](const auto& entry) { return entry.first == need; });
    if (same == by_need.end()) same = by_need.insert(by_need.end(), {need, {}});
    same->second.push_back(row->name);
  }
  std::string text;
  for (const auto& [need, names] : by_need) {
    if (!text.empty()) text += ", ";
    std::string list = names.front();
    for (size_t i = 1; i < names.size(); ++i)
      list += (i + 1 == names.size() ? " and " : ", ") + names[i];
    text += fmt::format("{} {} {}", list, names.size() == 1 ? "needs" : "need", need);
  }
  return text;
}

std::string KernelNeeds(const GroupRows& rows) {
  std::string text;
  for (const AttentionRow* row : rows) {
    if (!text.empty()) text += ", ";
    text += fmt::format("{} takes kernel blocks of {}", row->name, Text(row->kernel_blocks));
  }
  return text;
}

std::string Names(const std::vector<const AttentionRow*>& rows) {
  std::string text;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i > 0) text += i + 1 == rows.size() ? " and " : ", ";
    text += rows[i]->name;
  }
  return text;
}

// A size that all rows wish for, or 0. A row wishes only for what it accepts.
int SharedPreference(const std::vector<const AttentionRow*>& rows) {
  int wish = PreferredBlock(*rows.front(), kDefaultBlockTokens);
  for (const AttentionRow* row : rows) {
    if (PreferredBlock(*row, kDefaultBlockTokens) != wish) return 0;
  }
  return wish;
}

BlockStep AutomaticStep(const std::vector<const AttentionRow*>& rows) {
  if (rows.empty()) return {"default", kDefaultBlockTokens, "no row asks for more"};
  if (int wish = SharedPreference(rows); wish > 0) {
    return {wish == kDefaultBlockTokens ? "default" : "preferred", wish,
            fmt::format("{} {} it", Names(rows), rows.size() == 1 ? "prefers" : "prefer")};
  }
  if (AllSupport(rows, kDefaultBlockTokens))
    return {"default", kDefaultBlockTokens, "every row accepts it"};
  for (int64_t size : CommonMultiples(SizeLists(rows))) {
    if (AllSupport(rows, static_cast<int>(size)))
      return {"common", static_cast<int>(size), "smallest that suits: " + Needs(rows)};
  }
  return {"common", 0, ""};
}

std::string UseText(const std::string& sizes) {
  return sizes.empty() ? "choose other backends" : "use " + sizes;
}

}  // namespace

bool SupportsBlock(const AttentionRow& row, int tokens) {
  if (tokens <= 0) return false;
  if (!row.manager_blocks.empty()) {
    return std::any_of(row.manager_blocks.begin(), row.manager_blocks.end(),
                       [&](const BlockRule& rule) { return rule.Accepts(tokens); });
  }
  return row.kernel_blocks.empty() ||
         std::any_of(row.kernel_blocks.begin(), row.kernel_blocks.end(),
                     [&](const BlockRule& rule) { return tokens % rule.tokens == 0; });
}

bool TakesKernelBlock(const AttentionRow& row, int tokens) {
  return std::any_of(row.kernel_blocks.begin(), row.kernel_blocks.end(),
                     [&](const BlockRule& rule) { return rule.Accepts(tokens); });
}

std::vector<int> AdvertisedSizes(const AttentionRow& row) {
  std::vector<int> sizes;
  for (const BlockRule& rule : row.manager_blocks.empty() ? row.kernel_blocks : row.manager_blocks)
    sizes.push_back(rule.tokens);
  return sizes;
}

int SmallestKernelBlock(const AttentionRow& row) {
  int smallest = 0;
  for (const BlockRule& rule : row.kernel_blocks)
    smallest = smallest == 0 ? rule.tokens : std::min(smallest, rule.tokens);
  return smallest;
}

std::set<int64_t> CommonMultiples(const std::vector<std::vector<int>>& lists) {
  std::set<int64_t> multiples = {1};
  for (const std::vector<int>& sizes : lists) {
    if (sizes.empty()) continue;
    std::set<int64_t> next;
    for (int64_t multiple : multiples) {
      for (int64_t size : sizes) {
        int64_t common = std::lcm(multiple, size);
        if (common <= kLargestBlock) next.insert(common);
      }
    }
    multiples = std::move(next);
  }
  return multiples;
}

std::string BlockNeed(const AttentionRow& row) {
  std::vector<std::string> needs;
  bool exact = !row.manager_blocks.empty();
  const std::vector<BlockRule>& rules = exact ? row.manager_blocks : row.kernel_blocks;
  std::vector<int> multiples;
  for (const BlockRule& rule : rules) {
    if (exact && !rule.multiple) {
      needs.push_back(fmt::format("exactly {}", rule.tokens));
    } else if (std::none_of(rules.begin(), rules.end(), [&](const BlockRule& other) {
                 return other.tokens < rule.tokens && rule.tokens % other.tokens == 0 &&
                        (!exact || other.multiple);
               })) {
      multiples.push_back(rule.tokens);
    }
  }
  if (!multiples.empty()) {
    std::vector<std::string> words;
    for (int multiple : multiples) words.push_back(std::to_string(multiple));
    needs.push_back("a multiple of " + OneOf(words));
  }
  return needs.empty() ? "any size" : OneOf(needs);
}

int PreferredBlock(const AttentionRow& row, int otherwise) {
  if (row.preferred_block > 0 && SupportsBlock(row, row.preferred_block))
    return row.preferred_block;
  if (SupportsBlock(row, otherwise)) return otherwise;
  std::vector<int> sizes = AdvertisedSizes(row);
  return *std::min_element(sizes.begin(), sizes.end());
}

std::optional<int> KernelBlock(const GroupRows& rows, int tokens) {
  auto all_take = [&](int size) {
    return std::all_of(rows.begin(), rows.end(),
                       [&](const AttentionRow* row) { return TakesKernelBlock(*row, size); });
  };
  if (all_take(tokens)) return tokens;
  // When no exact size fits, every match is by multiples, and then `tokens` itself would have
  // passed: exact sizes are all there is to try.
  std::set<int, std::greater<int>> exact;
  for (const AttentionRow* row : rows) {
    for (const BlockRule& rule : row->kernel_blocks) {
      if (!rule.multiple) exact.insert(rule.tokens);
    }
  }
  for (int size : exact) {
    if (tokens % size == 0 && all_take(size)) return size;
  }
  return std::nullopt;
}

bool Usable(const std::vector<GroupRows>& groups, int tokens) {
  return AllSupport(Distinct(groups), tokens) &&
         std::all_of(groups.begin(), groups.end(),
                     [&](const GroupRows& rows) { return KernelBlock(rows, tokens).has_value(); });
}

std::string NearestBlocks(const std::vector<GroupRows>& groups, int tokens) {
  std::vector<std::string> sizes;
  int64_t below = std::min<int64_t>(tokens, kLargestBlock + 1) - 1;
  while (below > 0 && !Usable(groups, static_cast<int>(below))) --below;
  if (below > 0) sizes.push_back(std::to_string(below));
  int64_t above = static_cast<int64_t>(tokens) + 1;
  while (above <= kLargestBlock && !Usable(groups, static_cast<int>(above))) ++above;
  if (above <= kLargestBlock) sizes.push_back(std::to_string(above));
  return OneOf(sizes);
}

Problem BlockSizeProblem(const std::string& place, int tokens,
                         const std::vector<GroupRows>& groups) {
  std::vector<const AttentionRow*> rejecting;
  for (const AttentionRow* row : Distinct(groups)) {
    if (!SupportsBlock(*row, tokens)) rejecting.push_back(row);
  }
  std::string allowed = Needs(rejecting);
  if (rejecting.empty()) {
    for (const GroupRows& rows : groups) {
      if (KernelBlock(rows, tokens)) continue;
      allowed += fmt::format("{}no common kernel block in one group: {}",
                             allowed.empty() ? "" : "; ", KernelNeeds(rows));
    }
  }
  return {place, fmt::format("{} is not usable", tokens), allowed,
          UseText(NearestBlocks(groups, tokens))};
}

Result<BlockChoice> ChooseBlock(const std::vector<GroupRows>& groups, int requested,
                                const std::string& place) {
  BlockChoice choice;
  if (requested != 0) {
    choice.steps.push_back({"requested", requested, "kv.blockSize"});
    if (!Usable(groups, requested)) return BlockSizeProblem(place, requested, groups);
    choice.tokens = requested;
    return choice;
  }
  choice.steps.push_back({"requested", 0, "auto"});
  std::vector<const AttentionRow*> rows = Distinct(groups);
  BlockStep step = AutomaticStep(rows);
  if (step.tokens == 0) {
    return Problem{place, "no block size suits every backend", Needs(rows),
                   "choose other backends"};
  }
  if (!Usable(groups, step.tokens)) return BlockSizeProblem(place, step.tokens, groups);
  choice.tokens = step.tokens;
  choice.steps.push_back(std::move(step));
  return choice;
}

std::vector<std::string> RejectingRows(const std::vector<GroupRows>& groups, int tokens) {
  std::vector<std::string> names;
  for (const AttentionRow* row : Distinct(groups)) {
    if (!SupportsBlock(*row, tokens)) names.push_back(row->name);
  }
  return names;
}

std::optional<Granularity> GranularityOf(const std::vector<int>& group_blocks) {
  Granularity units;
  for (int block : group_blocks) {
    units.hash = std::gcd(units.hash, static_cast<int64_t>(block));
    int64_t scheduler = std::max<int64_t>(units.scheduler, 1);
    std::optional<int64_t> product =
        CheckedMul(scheduler / std::gcd(scheduler, int64_t{block}), static_cast<int64_t>(block));
    if (!product) return std::nullopt;
    units.scheduler = *product;
  }
  return units;
}

}  // namespace ashlar
