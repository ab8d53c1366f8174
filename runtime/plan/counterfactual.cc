#include "plan/counterfactual.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "plan/block_size.h"
#include "plan/select.h"

namespace ashlar {
namespace {

constexpr int kMostPlans = 16;  // for one candidate

// One setting said otherwise.
struct Edit {
  std::string text;  // "kv.blockSize: auto"
  std::function<void(Spec&)> apply;
};

std::vector<Edit> BlockEdits(const AttentionRow& row, const Spec& spec) {
  std::vector<Edit> edits;
  int preferred = PreferredBlock(row, spec.kv.block_size);
  edits.push_back({fmt::format("kv.blockSize: {}", preferred),
                   [=](Spec& changed) { changed.kv.block_size = preferred; }});
  edits.push_back({"kv.blockSize: auto", [](Spec& changed) { changed.kv.block_size = 0; }});
  return edits;
}

std::vector<Edit> DTypeEdits(const AttentionRow& row) {
  std::vector<Edit> edits;
  for (DType type : row.kv_dtypes) {
    std::string name(Info(type).name);
    edits.push_back({"kv.dtype: " + name, [=](Spec& changed) { changed.kv.dtype = name; }});
  }
  return edits;
}

Edit AllowEdit(const std::string& row) {
  return {fmt::format("{} out of backends' forbid", row), [=](Spec& changed) {
            for (auto& [key, choice] : changed.backends) std::erase(choice.forbid, row);
          }};
}

// Ways out of one reason, likeliest first.
std::vector<Edit> EditsFor(RefusalReason reason, const AttentionRow& row, const Spec& spec) {
  switch (reason) {
    case RefusalReason::kBlockSize:
      return BlockEdits(row, spec);
    case RefusalReason::kKvDType:
      return DTypeEdits(row);
    case RefusalReason::kLayout:
      return {{"kv.layout: auto", [](Spec& changed) { changed.kv.layout = "auto"; }}};
    case RefusalReason::kBatchInvariance:
      return {{"numerics: fast", [](Spec& changed) { changed.invariant = false; }}};
    case RefusalReason::kForbidden:
      return {AllowEdit(row.name)};
    case RefusalReason::kOtherDevice:
      return {{"platform: " + row.platform,
               [platform = row.platform](Spec& changed) { changed.platform = platform; }}};
    default:
      return {};
  }
}

class Finder {
 public:
  Finder(const Spec& spec, const Platform& platform, const ModelConfig& model,
         const WeightFacts& weights)
      : spec_(spec), platform_(platform), model_(model), weights_(weights) {}

  std::string Find(const KvGroup& group, const AttentionGroup& attention,
                   const Candidate& candidate) {
    const AttentionRow* row = RowOf(candidate);
    if (row == nullptr) return "";
    ways_.clear();
    for (RefusalReason reason : candidate.refusals) {
      ways_.push_back(EditsFor(reason, *row, spec_));
      if (ways_.back().empty()) return "";
    }
    group_ = group.name;
    attention_ = attention.index;
    row_ = candidate.row;
    plans_left_ = kMostPlans;
    std::vector<const Edit*> chosen;
    return Search(chosen) ? Text(chosen) : "";
  }

 private:
  static const AttentionRow* RowOf(const Candidate& candidate) {
    if (candidate.judgement == nullptr) return nullptr;
    for (const AttentionRow& row : candidate.judgement->basis->catalogue.rows) {
      if (row.name == candidate.row) return &row;
    }
    return nullptr;
  }

  // One way out of each reason, tried in order until a plan chooses the row. None of them is too
  // many: no setting is behind two reasons.
  bool Search(std::vector<const Edit*>& chosen) {
    if (chosen.size() == ways_.size()) return Works(chosen);
    for (const Edit& edit : ways_[chosen.size()]) {
      chosen.push_back(&edit);
      if (Search(chosen)) return true;
      chosen.pop_back();
    }
    return false;
  }

  bool Works(const std::vector<const Edit*>& edits) {
    if (plans_left_-- <= 0) return false;
    Spec changed = spec_;
    for (const Edit* edit : edits) edit->apply(changed);
    PlanAttempt attempt = TryPlan(changed, platform_, model_, weights_);
    if (!attempt.plan) return false;
    for (const KvGroup& group : attempt.plan->groups) {
      for (const AttentionGroup& attention : group.attention) {
        if (group.name == group_ && attention.index == attention_) return attention.row == row_;
      }
    }
    return false;
  }

  static std::string Text(const std::vector<const Edit*>& edits) {
    std::vector<std::string> texts;
    for (const Edit* edit : edits) texts.push_back(edit->text);
    return fmt::format("{}", fmt::join(texts, ", "));
  }

  const Spec& spec_;
  const Platform& platform_;
  const ModelConfig& model_;
  const WeightFacts& weights_;

  std::vector<std::vector<Edit>> ways_;  // by reason
  std::string group_, row_;
  int attention_ = 0;
  int plans_left_ = 0;
};

}  // namespace

void FindChanges(Plan& plan, const Spec& spec, const Platform& platform, const ModelConfig& model,
                 const WeightFacts& weights) {
  Finder finder(spec, platform, model, weights);
  for (KvGroup& group : plan.groups) {
    for (AttentionGroup& attention : group.attention) {
      for (Candidate& candidate : attention.candidates) {
        if (candidate.row == attention.row) break;  // the rest would be tried later
        if (!candidate.refusals.empty())
          candidate.chosen_with = finder.Find(group, attention, candidate);
      }
    }
  }
}

}  // namespace ashlar
