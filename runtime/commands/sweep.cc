#include "commands/sweep.h"

#include <fmt/format.h>

#include "catalogue/reference_plan.h"
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

void AddReference(const std::string& profile, const ReferencePlan& plan,
                  std::vector<TableRow>& rows) {
  for (const ReferenceAttention& attention : plan.attention) {
    bool first = &attention == &plan.attention.front();
    rows.push_back({first ? profile : "", attention.name,
                    attention.choice.chosen.empty() ? "-" : std::string(attention.choice.chosen),
                    std::to_string(attention.kernel_block_tokens)});
    if (!first) continue;
    if (!plan.failed.empty()) {
      rows.back().push_back(fmt::format("no {}: {}", plan.failed, plan.why));
    } else {
      rows.back().insert(rows.back().end(),
                         {std::to_string(plan.blocks.tokens), std::string(Name(plan.layout.layout)),
                          std::to_string(plan.pool.blocks)});
    }
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

std::string ReferenceSweepTable(const Spec& spec, const ModelSource& source,
                                const VllmAssume& assume) {
  std::vector<TableRow> rows = {
      {"profile", "attention", "backend", "kernel", "block", "layout", "blocks"}};
  for (const std::string& profile : PlatformProfiles()) {
    Result<ReferencePlan> plan = PlanLikeReference(spec, ReadPlatform(profile).value(),
                                                   source.config, source.weights, assume);
    if (plan) {
      AddReference(profile, *plan, rows);
    } else {
      rows.push_back({profile, "-", "refused: " + plan.problems().front().found});
    }
  }
  return fmt::format("catalogue {}: {}\n\n{}", kReferenceName, kReferenceLabel, Table(rows));
}

}  // namespace ashlar
