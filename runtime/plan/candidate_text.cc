#include "plan/candidate_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace ashlar {
namespace {

// "refused, planned".
std::string State(const Candidate& candidate, bool chosen) {
  std::string state = candidate.refusals.empty() ? (chosen ? "chosen" : "valid") : "refused";
  if (candidate.verification != Verification::kTested)
    state += fmt::format(", {}", Name(candidate.verification));
  return state;
}

std::string CandidateText(const Candidate& candidate, bool chosen) {
  std::string text = fmt::format("    {} {} ({}): {}\n", candidate.rank, candidate.row,
                                 candidate.platform, State(candidate, chosen));
  for (RefusalReason reason : candidate.refusals)
    text += fmt::format("      {}: {}\n", Text(reason), Explain(candidate, reason).detail);
  if (!candidate.chosen_with.empty()) {
    text += fmt::format("      chosen with {} (planned)\n", candidate.chosen_with);
  } else if (std::string change = ValidWith(candidate); !change.empty()) {
    text += fmt::format("      valid with {}\n", change);
  }
  return text;
}

// "refused, planned (head_size, kind)"; what a row of another device is, is said once.
std::string Standing(const Candidate& candidate) {
  if (candidate.refusals.Has(RefusalReason::kOtherDevice)) return "other device";
  std::string labels;
  for (RefusalReason reason : candidate.refusals)
    labels += fmt::format("{}{}", labels.empty() ? "" : ", ", Label(reason));
  return State(candidate, false) + (labels.empty() ? "" : " (" + labels + ")");
}

// Candidates in brief, those of one standing on one line.
std::string Brief(std::span<const Candidate> candidates) {
  std::vector<std::pair<std::string, std::string>> by_standing;
  for (const Candidate& candidate : candidates) {
    std::string standing = Standing(candidate);
    auto same = std::find_if(by_standing.begin(), by_standing.end(),
                             [&](const auto& entry) { return entry.first == standing; });
    if (same == by_standing.end()) same = by_standing.insert(by_standing.end(), {standing, ""});
    same->second += (same->second.empty() ? "" : ", ") + candidate.row;
  }
  std::string text;
  for (const auto& [standing, names] : by_standing)
    text += fmt::format("    {}: {}\n", names, standing);
  return text;
}

size_t ChosenIndex(const AttentionGroup& attention) {
  size_t index = 0;
  while (index < attention.candidates.size() && attention.candidates[index].row != attention.row)
    ++index;
  return index;
}

}  // namespace

std::string CandidatesText(const AttentionGroup& attention, bool full) {
  std::span<const Candidate> all = attention.candidates;
  size_t chosen = ChosenIndex(attention);
  bool found = chosen < all.size();
  std::string text;
  for (const Candidate& candidate : full ? all : all.first(found ? chosen : 0))
    text += CandidateText(candidate, candidate.row == attention.row);
  return full ? text : text + Brief(all.subspan(found ? chosen + 1 : 0));
}

std::string BackendText(const AttentionGroup& attention) {
  std::string text(attention.backend());
  size_t chosen = ChosenIndex(attention);
  if (chosen == attention.candidates.size()) return text;
  Verification level = attention.candidates[chosen].verification;
  return level == Verification::kTested ? text : fmt::format("{} ({})", text, Name(level));
}

}  // namespace ashlar
