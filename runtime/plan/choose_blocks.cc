#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/check.h"
#include "base/checked.h"
#include "plan/draft.h"
#include "plan/search.h"

namespace ashlar {
namespace {

// Above this share of padding a state's page is worth a note.
constexpr double kNotedPercent = 25;

struct Blocks {
  int tokens = 0;
  int64_t state_page = 0;  // what the pages of recurrent layers are padded to; 0: not padded
  std::vector<BlockStep> steps;
  std::vector<std::string> notes;
};

std::string Place(const Draft& draft) { return draft.spec.origins.Place("kv.blockSize"); }

// What the states of a hybrid model ask of the block; nothing for other models.
std::optional<StateNeed> StatesOf(const std::vector<KvGroup>& groups) {
  StateNeed need;
  for (const KvGroup& group : groups) {
    bool state = Info(group.kind).retention == Retention::kState;
    if (!state && !NeedsRow(group.kind)) continue;
    std::optional<PageGeometry> page = PageOf(group.cache, 1);
    if (!page) return std::nullopt;  // SizePages says so
    int64_t& bytes = state ? need.state_page : need.token_page;
    bytes = std::max(bytes, page->page_bytes);
  }
  if (need.state_page == 0 || need.token_page == 0) return std::nullopt;
  return need;
}

int FirstKernelBlock(const std::vector<GroupRows>& groups) {
  for (const GroupRows& rows : groups) {
    if (!rows.empty()) return SmallestKernelBlock(*rows.front());
  }
  return 0;
}

// Lets the block grow to hold a state. False when it would pass all sizes.
bool Grow(const Draft& draft, Blocks& blocks) {
  std::optional<StateNeed> need = StatesOf(draft.plan.groups);
  if (!need) return true;
  need->kernel_block = FirstKernelBlock(draft.rows);
  std::optional<StateBlock> grown = AlignToStates(*need, blocks.tokens);
  if (!grown) return false;
  if (grown->tokens != blocks.tokens) {
    blocks.steps.push_back(
        {"align", grown->tokens,
         fmt::format("a block takes as much as a state: {} at {} a token",
                     FormatBytes(need->state_page), FormatBytes(need->token_page))});
  }
  blocks.tokens = grown->tokens;
  blocks.state_page = grown->padded_page;
  if (grown->padded_percent > kNotedPercent) {
    blocks.notes.push_back(fmt::format(
        "states: {} of state stand in blocks of {}, {:.0f}% of it padding; a smaller "
        "kv.blockSize wastes less",
        FormatBytes(need->state_page), FormatBytes(grown->padded_page), grown->padded_percent));
  }
  return true;
}

Problem GrownProblem(const Draft& draft, int from, int tokens) {
  Problem problem = BlockSizeProblem(Place(draft), tokens, draft.rows);
  problem.found +=
      fmt::format(", which {} grows to so that a block takes as much as a state", from);
  problem.next = "choose other backends";
  return problem;
}

// One step after the other: rows as selected, a size that suits them, grown to hold a state.
Result<Blocks> SolveInSteps(const Draft& draft, int requested) {
  Result<BlockChoice> choice = ChooseBlock(draft.rows, requested, Place(draft));
  if (!choice.ok()) return choice.problems();
  Blocks blocks{choice->tokens, 0, choice->steps, {}};
  if (!Grow(draft, blocks)) {
    return Problem{Place(draft), "no block is large enough for a state", "states that fit a block",
                   "mend the model's configuration"};
  }
  if (blocks.tokens != choice->tokens && !Usable(draft.rows, blocks.tokens))
    return GrownProblem(draft, choice->tokens, blocks.tokens);
  return blocks;
}

const AttentionRow* FindRow(const Draft& draft, const std::string& name) {
  for (const AttentionRow& row : draft.known_rows()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

// The rows that may carry out an attention group: the chosen one alone when the user forces it,
// else every valid one of its platform.
std::vector<const AttentionRow*> ChoicesFor(const Draft& draft, const KvGroup& group,
                                            const AttentionGroup& attention) {
  const AttentionRow* chosen = FindRow(draft, attention.row);
  if (chosen == nullptr || !WishFor(draft.spec, group.name, group.kind).use.empty())
    return {chosen};
  std::vector<const AttentionRow*> choices;
  for (const Candidate& candidate : attention.candidates) {
    if (candidate.refusals.empty() && candidate.platform == chosen->platform)
      choices.push_back(FindRow(draft, candidate.row));
  }
  return choices;
}

JointRequest RequestOf(const Draft& draft) {
  JointRequest request;
  request.tokens = draft.spec.kv.block_size;
  request.states = StatesOf(draft.plan.groups);
  for (const KvGroup& group : draft.plan.groups) {
    JointGroup& joint = request.groups.emplace_back();
    joint.name = group.name;
    for (const AttentionGroup& attention : group.attention) {
      if (!attention.row.empty()) joint.choices.push_back(ChoicesFor(draft, group, attention));
    }
  }
  return request;
}

void TakeRow(Draft& draft, const KvGroup& group, AttentionGroup& attention, const AttentionRow& row,
             int tokens) {
  if (attention.row == row.name) return;
  draft.plan.notes.push_back(fmt::format(
      "joint search: {} takes the place of {} in group {}, so that blocks of {} suit every group",
      row.name, attention.row, group.name, tokens));
  attention.reason = fmt::format("joint search, in place of {}", attention.row);
  attention.row = row.name;
}

Blocks Adopt(Draft& draft, const JointChoice& choice) {
  for (KvGroup& group : draft.plan.groups) {
    size_t index = static_cast<size_t>(group.index), next = 0;
    GroupRows& rows = draft.rows[index];
    rows.clear();
    for (AttentionGroup& attention : group.attention) {
      if (attention.row.empty()) continue;
      const AttentionRow* row = choice.rows[index][next++];
      TakeRow(draft, group, attention, *row, choice.tokens);
      if (std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(row);
    }
  }
  int asked = draft.spec.kv.block_size;
  Blocks blocks{choice.requested, 0, {}, {}};
  blocks.steps.push_back({"requested", asked, asked == 0 ? "auto" : "kv.blockSize"});
  blocks.steps.push_back({"search", choice.requested, "rows and blocks chosen together"});
  Check(Grow(draft, blocks) && blocks.tokens == choice.tokens, "a searched block grows as found");
  return blocks;
}

// Says what became of the size that the user states.
void NoteChange(const Draft& draft, Blocks& blocks) {
  int asked = draft.spec.kv.block_size;
  if (asked == 0 || asked == blocks.tokens) return;
  Result<Blocks> automatic = SolveInSteps(draft, 0);
  bool same = automatic.ok() && automatic->tokens == blocks.tokens;
  blocks.notes.push_back(fmt::format("{}: {} becomes {}{}: {}", Place(draft), asked, blocks.tokens,
                                     same ? ", as without it" : "", blocks.steps.back().reason));
}

std::string KernelReason(const KvGroup& group) {
  if (Info(group.kind).retention == Retention::kState) return "one state a block";
  if (!NeedsRow(group.kind)) return "nothing is cached";
  if (group.kernel_block_tokens == group.block_tokens) return "the kernel takes it whole";
  return fmt::format("{} a block", group.block_tokens / group.kernel_block_tokens);
}

void Fill(Draft& draft, const Blocks& blocks) {
  draft.plan.notes.insert(draft.plan.notes.end(), blocks.notes.begin(), blocks.notes.end());
  for (KvGroup& group : draft.plan.groups) {
    const GroupRows& rows = draft.rows[static_cast<size_t>(group.index)];
    group.block_tokens = blocks.tokens;
    group.kernel_block_tokens = KernelBlock(rows, blocks.tokens).value_or(0);
    Check(group.kernel_block_tokens > 0, "a chosen block size has a kernel block in every group");
    if (Info(group.kind).retention == Retention::kState)
      group.cache.padded_page = blocks.state_page;
    group.block_steps = blocks.steps;
    group.block_steps.push_back({"kernel", group.kernel_block_tokens, KernelReason(group)});
  }
}

void SetUnits(Plan& plan) {
  std::vector<int> sizes;
  for (const KvGroup& group : plan.groups) sizes.push_back(group.block_tokens);
  std::optional<Granularity> units = GranularityOf(sizes);
  Check(units.has_value(), "one block size for all groups has a least common multiple");
  plan.cache_block_tokens = sizes.empty() ? 0 : *std::min_element(sizes.begin(), sizes.end());
  plan.hash_block_tokens = static_cast<int>(units->hash);
  plan.scheduler_block_tokens = static_cast<int>(units->scheduler);
}

}  // namespace

void SolveBlocks(Draft& draft) {
  Result<Blocks> blocks = SolveInSteps(draft, draft.spec.kv.block_size);
  if (!blocks.ok()) {
    JointResult joint = SearchJointly(RequestOf(draft));
    if (!joint.choice) {
      draft.problems = blocks.problems();
      draft.problems.front().allowed +=
          fmt::format("; no choice of backends suits {}", fmt::join(joint.core, ", "));
      return;
    }
    blocks = Adopt(draft, *joint.choice);
  }
  NoteChange(draft, *blocks);
  Fill(draft, *blocks);
  SetUnits(draft.plan);
}

// The page by the spec's arithmetic alone; the rows' own declarations are compared with it later.
void SizePages(Draft& draft) {
  for (KvGroup& group : draft.plan.groups) {
    std::optional<PageGeometry> page = PageOf(group.cache, group.block_tokens);
    std::optional<int64_t> block =
        page ? CheckedMul(page->page_bytes, static_cast<int64_t>(group.layers.size()))
             : std::nullopt;
    if (!block) {
      draft.problems.push_back({"group " + group.name, "the block of a layer has no size",
                                "sizes that fit 64 bits", "mend the model's configuration"});
      continue;
    }
    group.head_slots = page->head_slots;
    group.states = page->states;
    group.content_bytes = page->content_bytes;
    group.page_bytes = page->page_bytes;
  }
}

}  // namespace ashlar
