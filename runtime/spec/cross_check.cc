#include "spec/cross_check.h"

#include <fmt/format.h>

#include <algorithm>

namespace ashlar {
namespace {

bool Contains(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

void CheckSource(const Spec& spec, std::vector<Conflict>& conflicts) {
  bool path = spec.origins.Has("source.path"), builtin = spec.origins.Has("source.builtin");
  if (path != builtin) return;
  if (path) {
    conflicts.push_back({"source.builtin", "path and builtin stand side by side",
                         "exactly one of path and builtin", "delete one of the two"});
    return;
  }
  conflicts.push_back({"source", "no model is named", "exactly one of path and builtin",
                       "add source.path, or source.builtin: demo"});
}

void CheckChoice(const Spec& spec, const std::string& key, const BackendChoice& choice,
                 std::vector<Conflict>& conflicts) {
  std::string at = "backends." + key;
  if (spec.origins.Has(at + ".use") && spec.origins.Has(at + ".prefer")) {
    conflicts.push_back({at + ".prefer", "use and prefer stand side by side",
                         "either use, which forces one, or prefer, which orders several",
                         "delete one of the two"});
  }
  if (!choice.use.empty() && Contains(choice.forbid, choice.use)) {
    conflicts.push_back({at + ".forbid", fmt::format("{} is forced and forbidden", choice.use),
                         "names other than the one in use", "delete it from one of the two"});
  }
  for (const std::string& name : choice.prefer) {
    if (!Contains(choice.forbid, name)) continue;
    conflicts.push_back({at + ".forbid", fmt::format("{} is preferred and forbidden", name),
                         "names other than those in prefer", "delete it from one of the two"});
  }
}

void CheckLimits(const Spec& spec, std::vector<Conflict>& conflicts) {
  if (spec.limits.batch_tokens >= spec.limits.sequences) return;
  bool tokens = spec.origins.Has("limits.batchTokens");
  conflicts.push_back(
      {tokens ? "limits.batchTokens" : "limits.sequences",
       fmt::format("a step of {} tokens cannot hold {} sequences", spec.limits.batch_tokens,
                   spec.limits.sequences),
       "batchTokens of at least sequences, one token each",
       fmt::format("raise batchTokens to {} or lower sequences", spec.limits.sequences)});
}

}  // namespace

std::vector<Conflict> CrossCheck(const Spec& spec) {
  std::vector<Conflict> conflicts;
  CheckSource(spec, conflicts);
  for (const auto& [key, choice] : spec.backends) CheckChoice(spec, key, choice, conflicts);
  CheckLimits(spec, conflicts);
  return conflicts;
}

}  // namespace ashlar
