#include "commands/sweep.h"

#include <fmt/format.h>

#include "plan/table.h"
#include "probe/platform.h"

namespace ashlar {
namespace {

std::string Backends(const KvGroup& group) {
  std::string text;
  for (const AttentionGroup& attention : group.attention) {
    if (attention.backend().empty()) continue;
    text += (text.empty() ? "" : ", ") + std::string(attention.backend());
  }
  return text.empty() ? "-" : text;
}

void AddPlan(const std::string& profile, const Plan& plan, std::vector<TableRow>& rows) {
  for (const KvGroup& group : plan.groups) {
    bool first = &group == &plan.groups.front();
    rows.push_back({first ? profile : "", group.name, Backends(group),
                    std::to_string(group.block_tokens), std::to_string(group.kernel_block_tokens),
                    std::string(Name(plan.layout)), std::to_string(group.blocks),
                    first ? std::to_string(plan.context_length) : ""});
  }
}

}  // namespace

std::string SweepTable(const Spec& spec, const ModelSource& source) {
  std::vector<TableRow> rows = {
      {"profile", "group", "backend", "block", "kernel", "layout", "blocks", "context"}};
  std::string refusals;
  for (const std::string& profile : PlatformProfiles()) {
    PlanAttempt attempt =
        TryPlan(spec, ReadPlatform(profile).value(), source.config, source.weights);
    if (attempt.plan) {
      AddPlan(profile, *attempt.plan, rows);
    } else {
      rows.push_back({profile, "-", "refused: " + attempt.check});
      refusals += fmt::format("{}: {}\n", profile, attempt.problems.front().Text());
    }
  }
  return Table(rows) + (refusals.empty() ? "" : "\n" + refusals);
}

}  // namespace ashlar
