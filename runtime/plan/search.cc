#include "plan/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>

namespace ashlar {
namespace {

using Rows = std::vector<const AttentionRow*>;

// Kernel blocks that a manager block may be split into, as KernelBlock tries them.
std::vector<int> KernelSizes(const JointGroup& group, int tokens) {
  std::set<int, std::greater<int>> exact;
  for (const Rows& rows : group.choices) {
    for (const AttentionRow* row : rows) {
      for (const BlockRule& rule : row->kernel_blocks) {
        if (!rule.multiple && rule.tokens != tokens && tokens % rule.tokens == 0)
          exact.insert(rule.tokens);
      }
    }
  }
  std::vector<int> sizes = {tokens};
  sizes.insert(sizes.end(), exact.begin(), exact.end());
  return sizes;
}

// The rows of least rank that take blocks of `tokens` together. Given the kernel block, each
// attention group is free of the others.
std::optional<Rows> ChooseAt(const JointGroup& group, int tokens) {
  std::optional<Rows> best;
  size_t best_rank = 0;
  for (int kernel : KernelSizes(group, tokens)) {
    Rows chosen;
    size_t rank = 0;
    for (const Rows& rows : group.choices) {
      auto row = std::find_if(rows.begin(), rows.end(), [&](const AttentionRow* candidate) {
        return SupportsBlock(*candidate, tokens) && TakesKernelBlock(*candidate, kernel);
      });
      if (row == rows.end()) break;
      rank += static_cast<size_t>(row - rows.begin());
      chosen.push_back(*row);
    }
    if (chosen.size() < group.choices.size() || (best && rank >= best_rank)) continue;
    best = std::move(chosen);
    best_rank = rank;
  }
  return best;
}

int FirstKernelBlock(const JointChoice& choice) {
  for (const Rows& rows : choice.rows) {
    if (!rows.empty()) return SmallestKernelBlock(*rows.front());
  }
  return 0;
}

std::optional<JointChoice> ChooseAll(const std::vector<JointGroup>& groups, int tokens) {
  JointChoice all;
  all.requested = all.tokens = tokens;
  for (const JointGroup& group : groups) {
    std::optional<Rows> rows = ChooseAt(group, tokens);
    if (!rows) return std::nullopt;
    all.rows.push_back(*std::move(rows));
  }
  return all;
}

// At a block that states may make grow: the rows must take what it has become.
std::optional<JointChoice> ChooseGrown(const JointRequest& request,
                                       const std::vector<JointGroup>& groups, int tokens) {
  std::optional<JointChoice> choice = ChooseAll(groups, tokens);
  if (!choice || !request.states) return choice;
  StateNeed need = *request.states;
  need.kernel_block = FirstKernelBlock(*choice);
  std::optional<StateBlock> grown = AlignToStates(need, tokens);
  if (!grown) return std::nullopt;
  if (grown->tokens == tokens) return choice;
  choice = ChooseAll(groups, grown->tokens);
  if (choice) choice->requested = tokens;
  return choice;
}

// From the default upwards, then what is smaller, the largest first.
std::vector<int> Candidates(const std::vector<JointGroup>& groups) {
  std::vector<std::vector<int>> lists;
  for (const JointGroup& group : groups) {
    for (const Rows& rows : group.choices) {
      std::vector<int>& sizes = lists.emplace_back();
      for (const AttentionRow* row : rows) {
        std::vector<int> own = AdvertisedSizes(*row);
        sizes.insert(sizes.end(), own.begin(), own.end());
      }
    }
  }
  std::set<int64_t> multiples = CommonMultiples(lists);
  multiples.insert(kDefaultBlockTokens);
  std::set<int64_t>::iterator first = multiples.find(kDefaultBlockTokens);
  std::vector<int> sizes(first, multiples.end());
  sizes.insert(sizes.end(), std::make_reverse_iterator(first), multiples.rend());
  return sizes;
}

std::optional<JointChoice> Solve(const JointRequest& request,
                                 const std::vector<JointGroup>& groups) {
  if (request.tokens > 0) return ChooseGrown(request, groups, request.tokens);
  for (int tokens : Candidates(groups)) {
    if (std::optional<JointChoice> choice = ChooseGrown(request, groups, tokens)) return choice;
  }
  return std::nullopt;
}

std::string Describe(const JointGroup& group) {
  std::string text = "group " + group.name;
  for (size_t i = 0; i < group.choices.size(); ++i) {
    text += i == 0 ? " (" : "; ";
    for (size_t j = 0; j < group.choices[i].size(); ++j) {
      const AttentionRow& row = *group.choices[i][j];
      text += fmt::format("{}{} needs {}", j == 0 ? "" : " or ", row.name, BlockNeed(row));
    }
  }
  return text + (group.choices.empty() ? "" : ")");
}

// Groups without which a size could be found are all that is left.
std::vector<std::string> Core(const JointRequest& request) {
  std::vector<JointGroup> groups = request.groups;
  for (size_t i = 0; i < groups.size();) {
    std::vector<JointGroup> fewer = groups;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (Solve(request, fewer)) {
      ++i;
    } else {
      groups = std::move(fewer);
    }
  }
  std::vector<std::string> core;
  for (const JointGroup& group : groups) core.push_back(Describe(group));
  return core;
}

}  // namespace

JointResult SearchJointly(const JointRequest& request) {
  JointResult result;
  result.choice = Solve(request, request.groups);
  if (!result.choice) result.core = Core(request);
  return result;
}

}  // namespace ashlar
