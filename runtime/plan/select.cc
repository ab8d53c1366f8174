#include "plan/select.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/nearest.h"
#include "plan/cache_spec.h"
#include "plan/validate.h"

namespace ashlar {
namespace {

bool Contains(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// What the row's data says, then what the spec and whoever loaded the row say.
Refusals RefusalsOf(const SelectionBasis& basis, const AttentionRow& row,
                    const AttentionRequest& request, const Wish& wish) {
  Refusals refusals = Validate(row, request, basis.target);
  if (refusals.Has(RefusalReason::kOtherDevice)) return refusals;
  for (const RowFault& fault : basis.catalogue.faults) {
    if (fault.row != row.name) continue;
    if (fault.reason == RefusalReason::kLoadFailure) return {RefusalReason::kLoadFailure};
    refusals.Add(fault.reason);
  }
  if (Contains(wish.forbid, row.name)) refusals.Add(RefusalReason::kForbidden);
  if (Contains(basis.catalogue.missing, row.name)) refusals.Add(RefusalReason::kPluginMissing);
  return refusals;
}

// Preferred rows first, in the order of the wish; the rest keep theirs.
void ApplyPreference(std::vector<const AttentionRow*>& ranked, const Wish& wish) {
  if (wish.prefer.empty()) return;
  std::stable_sort(ranked.begin(), ranked.end(), [&](const auto* a, const auto* b) {
    auto place = [&](const AttentionRow* row) {
      return std::find(wish.prefer.begin(), wish.prefer.end(), row->name) - wish.prefer.begin();
    };
    return place(a) < place(b);
  });
}

std::string Reasons(const Candidate& candidate) {
  std::string text;
  for (RefusalReason reason : candidate.refusals) {
    if (!text.empty()) text += ", ";
    text += fmt::format("{} ({})", Text(reason), Explain(candidate, reason).detail);
  }
  return text;
}

std::string Describe(const AttentionRequest& request, const Target& target) {
  return fmt::format("{}, {} heads on {} KV heads of {}, KV in {} on {} ({})", Name(request.kind),
                     request.heads, request.kv_heads, request.head_dim, Info(request.kv_dtype).name,
                     target.device.platform, target.device.product);
}

size_t ValidCount(const std::vector<Candidate>& candidates) {
  return static_cast<size_t>(std::count_if(candidates.begin(), candidates.end(),
                                           [](const Candidate& c) { return c.refusals.empty(); }));
}

std::vector<std::string> ValidNames(const std::vector<Candidate>& candidates) {
  std::vector<std::string> names;
  for (const Candidate& candidate : candidates) {
    if (candidate.refusals.empty()) names.push_back(candidate.row);
  }
  return names;
}

Problem NothingValid(const std::vector<Candidate>& candidates, const AttentionRequest& request,
                     const Target& target, const std::string& group) {
  std::string reasons, change;
  std::vector<std::string> elsewhere;
  for (const Candidate& candidate : candidates) {
    if (change.empty()) change = ValidWith(candidate);
    if (candidate.refusals.Has(RefusalReason::kOtherDevice)) {
      elsewhere.push_back(candidate.row);
      continue;
    }
    reasons +=
        fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", candidate.row, Reasons(candidate));
  }
  if (!elsewhere.empty()) {
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", fmt::join(elsewhere, ", "),
                           Text(RefusalReason::kOtherDevice));
  }
  return {fmt::format("group {}", group),
          "no valid attention backend for " + Describe(request, target),
          reasons.empty() ? "no backend is known" : reasons,
          change.empty() ? "choose a platform with a backend for this attention type"
                         : "try " + change};
}

Problem ForcedInvalid(const Candidate& forced, const std::vector<Candidate>& candidates,
                      const Wish& wish, const std::string& group, const Origins& origins) {
  std::vector<std::string> valid = ValidNames(candidates);
  std::string next = ValidWith(forced);
  if (next.empty() && !valid.empty()) next = "use " + OneOf(valid);
  if (next.empty()) next = fmt::format("take {} out", wish.use_field);
  return {origins.Place(wish.use_field),
          fmt::format("{} is not valid for group {}", forced.row, group), Reasons(forced), next};
}

// The setting of the user that is this candidate's only obstacle, or "".
std::string_view OnlyObstacle(const Candidate& candidate) {
  if (candidate.refusals == Refusals{RefusalReason::kBlockSize}) return "kv.blockSize";
  if (candidate.refusals == Refusals{RefusalReason::kLayout}) return "kv.layout";
  return "";
}

// Rows of one platform that only this setting refuses.
std::vector<const AttentionRow*> BlockedBy(std::string_view field,
                                           const std::vector<const AttentionRow*>& ranked,
                                           const std::vector<Candidate>& candidates,
                                           const std::string& platform) {
  std::vector<const AttentionRow*> rows;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].platform == platform && OnlyObstacle(candidates[i]) == field)
      rows.push_back(ranked[i]);
  }
  return rows;
}

void ChooseForced(Selection& out, const std::vector<const AttentionRow*>& ranked, const Wish& wish,
                  const std::string& group, const Origins& origins) {
  out.requested = wish.use;
  out.reason = "forced by " + wish.use_field;
  auto forced = std::find_if(out.candidates.begin(), out.candidates.end(),
                             [&](const Candidate& candidate) { return candidate.row == wish.use; });
  if (forced == out.candidates.end()) return;  // CheckWishes names it
  const AttentionRow* row = ranked[static_cast<size_t>(forced - out.candidates.begin())];
  if (forced->refusals.empty()) {
    out.outcome = SelectionOutcome::kRow;
    out.row = row;
  } else if (std::string_view field = OnlyObstacle(*forced); !field.empty()) {
    out.blocking_field = field;
    out.blocked = {row};
  } else {
    out.problem = ForcedInvalid(*forced, out.candidates, wish, group, origins);
  }
}

// Notes what the user's setting passed over.
void NoteObstacles(Selection& out, size_t chosen, const std::string& group,
                   const Origins& origins) {
  std::vector<std::string> passed;
  std::string_view field;
  for (size_t i = 0; i < chosen; ++i) {
    std::string_view obstacle = OnlyObstacle(out.candidates[i]);
    if (obstacle.empty()) continue;
    field = obstacle;
    passed.push_back(out.candidates[i].row);
  }
  if (passed.empty()) return;
  out.notes.push_back(
      fmt::format("{}: passes over {} in group {}; {} is used instead and may be slower",
                  origins.Place(std::string(field)), fmt::join(passed, ", "), group,
                  out.candidates[chosen].row));
}

// Latent attention on a device none of whose rows, refused ones counted, is for it.
bool OpDriven(const AttentionRequest& request, const SelectionBasis& basis) {
  if (!Info(request.kind).latent) return false;
  return std::none_of(basis.catalogue.rows.begin(), basis.catalogue.rows.end(),
                      [&](const AttentionRow& row) {
                        return row.mla && Contains(basis.target.platforms, row.platform);
                      });
}

void ChooseFirstValid(Selection& out, const std::vector<const AttentionRow*>& ranked,
                      const AttentionRequest& request, const SelectionBasis& basis,
                      const Wish& wish, const std::string& group, const Origins& origins) {
  out.requested = "auto";
  if (!wish.prefer.empty()) out.requested = fmt::format("prefer {}", fmt::join(wish.prefer, ", "));
  size_t chosen = 0;
  while (chosen < ranked.size() && !out.candidates[chosen].refusals.empty()) ++chosen;

  if (chosen == ranked.size() && OpDriven(request, basis)) {
    out.outcome = SelectionOutcome::kOpDriven;
    out.reason = kNoMlaRow;
    return;
  }
  const std::string& home = basis.target.device.platform;
  bool away = chosen < ranked.size() && ranked[chosen]->platform != home &&
              !Contains(wish.prefer, ranked[chosen]->name);
  if (chosen == ranked.size() || away) {
    for (const char* field : {"kv.blockSize", "kv.layout"}) {
      out.blocked = BlockedBy(field, ranked, out.candidates, home);
      if (out.blocked.empty()) continue;
      out.blocking_field = field;
      return;
    }
  }
  if (chosen == ranked.size()) {
    out.problem = NothingValid(out.candidates, request, basis.target, group);
    return;
  }
  out.outcome = SelectionOutcome::kRow;
  out.row = ranked[chosen];
  out.reason = fmt::format("rank {} of {} valid", chosen, ValidCount(out.candidates));
  if (Contains(wish.prefer, out.row->name))
    out.reason = fmt::format("preferred by {}, {}", wish.prefer_field, out.reason);
  if (away) {
    out.notes.push_back(fmt::format("group {}: no row of {} can carry it out; {} does and is slow",
                                    group, home, out.row->name));
  }
  NoteObstacles(out, chosen, group, origins);
}

}  // namespace

Selector::Selector(Catalogue catalogue, Target target, std::span<const RankRule> rules,
                   const Origins& origins)
    : basis_(std::make_shared<const SelectionBasis>(
          SelectionBasis{std::move(catalogue), std::move(target)})),
      rules_(rules),
      origins_(origins) {}

const Selector::Judged& Selector::Judge(const AttentionRequest& request, const Wish& wish) {
  for (const Judged& judged : judged_) {
    if (judged.request == request && judged.wish == wish) return judged;
  }
  Judged& judged = judged_.emplace_back(Judged{request, wish, {}, {}});
  judged.ranked = RankRows(basis_->catalogue.rows, request, basis_->target, rules_);
  ApplyPreference(judged.ranked, wish);
  auto judgement = std::make_shared<const Judgement>(Judgement{basis_, request, wish.forbid_field});
  judged.candidates.reserve(judged.ranked.size());
  for (const AttentionRow* row : judged.ranked) {
    judged.candidates.push_back(
        {row->name, row->platform, static_cast<int>(judged.candidates.size()),
         RefusalsOf(*basis_, *row, request, wish), row->verification, judgement});
  }
  return judged;
}

Selection Selector::Choose(const AttentionRequest& request, const Wish& wish,
                           const std::string& group) {
  const Judged& judged = Judge(request, wish);
  Selection out;
  out.candidates = judged.candidates;
  if (!wish.use.empty()) {
    ChooseForced(out, judged.ranked, wish, group, origins_);
  } else {
    ChooseFirstValid(out, judged.ranked, request, *basis_, wish, group, origins_);
  }
  return out;
}

Selection Select(const Catalogue& catalogue, const AttentionRequest& request, const Target& target,
                 const Wish& wish, std::span<const RankRule> rules, const std::string& group,
                 const Origins& origins) {
  Selector selector(catalogue, target, rules, origins);
  Selection selection = selector.Choose(request, wish, group);
  const AttentionRow* copies = selector.catalogue().rows.data();
  auto original = [&](const AttentionRow* row) { return catalogue.rows.data() + (row - copies); };
  if (selection.row != nullptr) selection.row = original(selection.row);
  for (const AttentionRow*& row : selection.blocked) row = original(row);
  return selection;
}

}  // namespace ashlar
