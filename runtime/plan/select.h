// One row for one attention group, with every other candidate and why it was not taken.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"
#include "plan/rank.h"
#include "plan/request.h"

namespace ashlar {

// What the spec says of one KV group, each part from the most specific entry that states it: group
// name, then kind, then default. The fields say where it stands.
struct Wish {
  std::string use, use_field;
  std::vector<std::string> prefer, forbid;
  std::string prefer_field, forbid_field;
};
Wish WishFor(const Spec& spec, const std::string& group, KvKind kind);

// Rows that can be considered: those of the platform value, and those that the runtime knows of
// without their plugin.
struct Catalogue {
  std::vector<AttentionRow> rows;
  std::vector<std::string> missing;  // names of rows whose plugin is not installed
};

struct Selection {
  const AttentionRow* row =
      nullptr;  // into the catalogue; null: nothing valid, or the forced row is not
  std::vector<Candidate> candidates;  // by rank
  std::string requested, reason;
  std::vector<std::string> notes;
  // When row is null: the setting that alone stands in the way ("kv.blockSize", "kv.layout") with
  // the rows that it refuses, or no setting and the problem.
  std::string blocking_field;
  std::vector<const AttentionRow*> blocked;
  Problem problem;
};

// `group` names the attention group in messages: "full_attention", "full_attention attn 1".
// A setting of the user may pass over a row but never moves a group to another platform's rows:
// that is a refusal.
Selection Select(const Catalogue& catalogue, const AttentionRequest& request, const Target& target,
                 const Wish& wish, std::span<const RankRule> rules, const std::string& group,
                 const Origins& origins);

// Mistakes in `backends` that no selection would notice: unknown keys and unknown row names.
Problems CheckWishes(const Spec& spec, const Catalogue& catalogue,
                     const std::vector<KvGroup>& groups);

}  // namespace ashlar
