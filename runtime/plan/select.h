// One row for one attention group, with every other candidate and why it was not taken.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "plan/rank.h"
#include "plan/request.h"
#include "plan/wish.h"

namespace ashlar {

// Why a row that was found cannot be used, as whoever loaded or launched it says: kLoadFailure
// (then the only reason), kLaunchProbe or kToolchain.
struct RowFault {
  std::string row;
  RefusalReason reason = RefusalReason::kLoadFailure;
  std::string detail;
};

// Rows that can be considered: those of the platform value, and those that the runtime knows of
// without their plugin.
struct Catalogue {
  std::vector<AttentionRow> rows;
  std::vector<std::string> missing = {};  // names of rows whose plugin is not installed
  std::vector<RowFault> faults = {};
};

// What every selection of one plan is made from.
struct SelectionBasis {
  Catalogue catalogue;
  Target target;
};

// What one selection judged its candidates by.
struct Judgement {
  std::shared_ptr<const SelectionBasis> basis;
  AttentionRequest request;
  std::string forbid_field;  // where the spec forbids rows, or ""
};

enum class SelectionOutcome {
  kNone,  // no row: see problem, or the field that blocks
  kRow,
  kOpDriven,  // latent attention where no MLA row is registered: composed from the plugin's ops
};

struct Selection {
  SelectionOutcome outcome = SelectionOutcome::kNone;
  const AttentionRow* row = nullptr;  // into the basis; null unless outcome is kRow
  std::vector<Candidate> candidates;  // by rank
  std::string requested, reason;
  std::vector<std::string> notes;
  // When outcome is kNone: the setting that alone stands in the way ("kv.blockSize", "kv.layout")
  // with the rows that it refuses, or no setting and the problem.
  std::string blocking_field;
  std::vector<const AttentionRow*> blocked;
  Problem problem;
};

// Why an op-driven group has no row.
inline constexpr std::string_view kNoMlaRow = "no MLA backend registered";

// Chooses rows for the groups of one plan. Candidates of equal wishes and requests are judged once.
class Selector {
 public:
  // `origins` and `rules` must outlive it.
  Selector(Catalogue catalogue, Target target, std::span<const RankRule> rules,
           const Origins& origins);

  // `group` names the attention group in messages: "full_attention", "full_attention attn 1".
  // A setting of the user may pass over a row but never moves a group to another platform's rows:
  // that is a refusal.
  Selection Choose(const AttentionRequest& request, const Wish& wish, const std::string& group);

  const Catalogue& catalogue() const { return basis_->catalogue; }
  const Target& target() const { return basis_->target; }
  int judged() const { return static_cast<int>(judged_.size()); }  // different (wish, request)

 private:
  struct Judged {
    AttentionRequest request;
    Wish wish;
    std::vector<const AttentionRow*> ranked;
    std::vector<Candidate> candidates;  // of the same rows
  };
  const Judged& Judge(const AttentionRequest& request, const Wish& wish);

  std::shared_ptr<const SelectionBasis> basis_;
  std::span<const RankRule> rules_;
  const Origins& origins_;
  std::deque<Judged> judged_;
};

// One selection by itself; `row` and `blocked` point into `catalogue`.
Selection Select(const Catalogue& catalogue, const AttentionRequest& request, const Target& target,
                 const Wish& wish, std::span<const RankRule> rules, const std::string& group,
                 const Origins& origins);

}  // namespace ashlar
