#include <fmt/format.h>

#include "catalogue/reference_plan.h"
#include "plan/table.h"

namespace ashlar {
namespace {

std::string Reason(const VllmReason& reason) {
  return reason.why.empty() ? std::string(Text(reason.reason))
                            : fmt::format("{} ({})", Text(reason.reason), reason.why);
}

std::string Reasons(const VllmReasons& reasons) {
  std::string text;
  for (const VllmReason& reason : reasons) text += (text.empty() ? "" : ", ") + Reason(reason);
  return text;
}

std::string Chosen(const ReferenceAttention& attention) {
  if (!attention.choice.chosen.empty()) return std::string(attention.choice.chosen);
  if (attention.choice.error == VllmError::kNone) return "-";
  return fmt::format("none: {}", Name(attention.choice.error));
}

Json AttentionJson(const ReferenceAttention& attention) {
  Json json = {{"group", attention.name},
               {"layers", attention.layers},
               {"backend", attention.choice.chosen},
               {"kernelBlockSize", attention.kernel_block_tokens},
               {"candidates", Json::array()}};
  if (attention.choice.error != VllmError::kNone) json["error"] = Name(attention.choice.error);
  for (const VllmCandidate& candidate : attention.choice.candidates) {
    Json one = {{"backend", candidate.backend}, {"valid", candidate.reasons.empty()}};
    for (const VllmReason& reason : candidate.reasons)
      one["refusals"].push_back(Label(reason.reason));
    json["candidates"].push_back(std::move(one));
  }
  return json;
}

std::string Groups(const ReferencePlan& plan) {
  std::vector<TableRow> rows = {{"KV group", "layers", "block", "bytes a block"}};
  for (size_t i = 0; i < plan.grouping.groups.size(); ++i) {
    const ReferenceGroup& group = plan.grouping.groups[i];
    rows.push_back({std::to_string(i), std::to_string(group.layers.size()),
                    std::to_string(group.block_tokens()), std::to_string(group.block_bytes())});
  }
  return rows.size() > 1 ? "\n" + Table(rows) : "";
}

std::string Refused(const ReferencePlan& plan) {
  std::string text;
  for (const ReferenceAttention& attention : plan.attention) {
    for (const VllmCandidate& candidate : attention.choice.candidates) {
      if (!candidate.reasons.empty())
        text += fmt::format("  {}: {} refused: {}\n", attention.name, candidate.backend,
                            Reasons(candidate.reasons));
    }
  }
  return text.empty() ? "" : "\n" + text;
}

}  // namespace

std::string ToText(const ReferencePlan& plan) {
  std::string text =
      fmt::format("catalogue {} for {} on {} ({})\n{}\n\n", kReferenceName, plan.model_name,
                  plan.platform_name, plan.product, kReferenceLabel);
  std::vector<TableRow> rows = {{"attention", "layers", "backend", "kernel"}};
  for (const ReferenceAttention& attention : plan.attention)
    rows.push_back({attention.name, std::to_string(attention.layers.size()), Chosen(attention),
                    std::to_string(attention.kernel_block_tokens)});
  text += Table(rows) + Groups(plan);
  text += Refused(plan);
  if (!plan.failed.empty())
    return text + fmt::format("\nno plan: no answer for {}: {}\n", plan.failed, plan.why);
  return text + fmt::format(
                    "\nblock     {} tokens; hash block {}, scheduler block {}\nlayout    {}\n"
                    "blocks    {}\n",
                    plan.blocks.tokens, plan.units.hash, plan.units.scheduler,
                    Name(plan.layout.layout), plan.pool.blocks);
}

Json ToJson(const ReferencePlan& plan) {
  Json json = {{"catalogue", kReferenceName}, {"label", kReferenceLabel},
               {"model", plan.model_name},    {"platformName", plan.platform_name},
               {"product", plan.product},     {"attention", Json::array()}};
  for (const ReferenceAttention& attention : plan.attention)
    json["attention"].push_back(AttentionJson(attention));
  if (!plan.failed.empty()) {
    json["failed"] = plan.failed;
    json["why"] = plan.why;
    return json;
  }
  json["blockSize"] = plan.blocks.tokens;
  json["hashBlockSize"] = plan.units.hash;
  json["schedulerBlockSize"] = plan.units.scheduler;
  json["layout"] = Name(plan.layout.layout);
  json["blocks"] = plan.pool.blocks;
  for (const ReferenceGroup& group : plan.grouping.groups)
    json["kvGroups"].push_back({{"layers", group.layers},
                                {"blockSize", group.block_tokens()},
                                {"blockBytes", group.block_bytes()}});
  return json;
}

}  // namespace ashlar
