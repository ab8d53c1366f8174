#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "plan/plan.h"
#include "plan/select.h"
#include "plan/table.h"

namespace ashlar {
namespace {

// "0-4, 6-10".
std::string Ranges(const std::vector<int>& layers) {
  std::string text;
  for (size_t i = 0; i < layers.size();) {
    size_t last = i;
    while (last + 1 < layers.size() && layers[last + 1] == layers[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text +=
        last == i ? fmt::format("{}", layers[i]) : fmt::format("{}-{}", layers[i], layers[last]);
    i = last + 1;
  }
  return text;
}

std::string Head(const Plan& plan) {
  std::string text = fmt::format("plan for {} ({}) on {} ({}), device {}: {}", plan.model_name,
                                 plan.model.architecture, plan.platform, plan.platform_name,
                                 plan.device_number, plan.product);
  if (plan.threads > 0)
    text += fmt::format(", {} thread{}", plan.threads, plan.threads == 1 ? "" : "s");
  return text + fmt::format(
                    "\n\ncontext   {} tokens ({})\nlimits    {} sequences, {} tokens a step\n"
                    "numerics  {}\n",
                    plan.context_length, plan.context_reason, plan.max_sequences, plan.batch_tokens,
                    plan.invariant ? "invariant" : "fast");
}

std::string Summary(const Plan& plan) {
  std::vector<TableRow> rows = {{"group", "name", "layers", "backend", "requested", "KV", "block",
                                 "kernel", "blocks", "bytes"}};
  for (const KvGroup& group : plan.groups) {
    for (const AttentionGroup& attention : group.attention) {
      rows.push_back({fmt::format("{}.{}", group.index, attention.index), group.name,
                      Ranges(attention.layers), attention.row, attention.requested,
                      std::string(Info(group.dtype).name), std::to_string(group.block_tokens),
                      std::to_string(group.kernel_block_tokens), std::to_string(group.blocks),
                      FormatBytes(group.bytes())});
    }
  }
  return "\nKV groups\n" + Table(rows);
}

std::string CandidateText(const Candidate& candidate, bool chosen) {
  std::string state = candidate.refusals.empty() ? (chosen ? "chosen" : "valid") : "refused";
  if (candidate.verification != Verification::kTested)
    state += fmt::format(", {}", Name(candidate.verification));
  std::string text =
      fmt::format("    {} {} ({}): {}\n", candidate.rank, candidate.row, candidate.platform, state);
  bool reachable = true;
  std::string change;
  for (RefusalReason reason : candidate.refusals) {
    Explanation words = Explain(candidate, reason);
    text += fmt::format("      {}: {}\n", Text(reason), words.detail);
    reachable = reachable && !words.counterfactual.empty();
    change += (change.empty() ? "" : " and ") + words.counterfactual;
  }
  if (!candidate.chosen_with.empty()) {
    text += fmt::format("      chosen with {} (planned)\n", candidate.chosen_with);
  } else if (!change.empty() && reachable) {  // each reason has a way out
    text += fmt::format("      valid with {}\n", change);
  }
  return text;
}

std::string StepsText(const KvGroup& group) {
  std::string text;
  for (const BlockStep& step : group.block_steps) {
    if (!text.empty()) text += " -> ";
    text += step.tokens == 0 ? step.reason
                             : fmt::format("{} {} ({})", step.stage, step.tokens, step.reason);
  }
  return text;
}

std::string GroupText(const KvGroup& group) {
  std::string text = fmt::format("\ngroup {} {}", group.index, group.name);
  if (group.window > 0) text += fmt::format(", window {}", group.window);
  text += "\n";
  for (const AttentionGroup& attention : group.attention) {
    text += fmt::format("  attn {}: layers {}; {} heads on {} KV heads of {}\n", attention.index,
                        Ranges(attention.layers), attention.layer.heads, attention.layer.kv_heads,
                        attention.layer.head_dim);
    std::string_view row = attention.op_driven ? kOpDriven : attention.row;
    text += fmt::format("  backend {}: {}\n", row.empty() ? "none" : row, attention.reason);
    for (const Candidate& candidate : attention.candidates)
      text += CandidateText(candidate, candidate.row == attention.row);
  }
  text += fmt::format("  block size: {}\n", StepsText(group));
  text += fmt::format("  page [{}, {}, {}] = {} a layer, {} a block; strides [{}], offset {}\n",
                      group.head_slots, group.states, group.content_bytes,
                      FormatBytes(group.page_bytes),
                      FormatBytes(group.page_bytes * static_cast<int64_t>(group.layers.size())),
                      fmt::join(group.strides, ", "), group.offset);
  return text;
}

std::string Tail(const Plan& plan) {
  const MemoryBudget& memory = plan.memory;
  std::string text = fmt::format("\nlayout    {} ({})\n", Name(plan.layout), plan.layout_reason);
  text += fmt::format("prefix    reused in units of {} tokens; scheduler block {}\n",
                      plan.hash_block_tokens, plan.scheduler_block_tokens);
  text += fmt::format("memory    {} free, weights {}, workspace {}; KV cache {} of at most {}\n",
                      FormatBytes(memory.free_bytes), FormatBytes(memory.weight_bytes),
                      FormatBytes(memory.workspace_bytes), FormatBytes(memory.kv_bytes),
                      FormatBytes(memory.kv_limit_bytes));
  text += fmt::format("capacity  {:.1f} sequences of {} tokens, {} each\n", memory.sequences,
                      plan.context_length, FormatBytes(memory.sequence_bytes));
  for (const std::string& note : plan.notes) text += fmt::format("note      {}\n", note);
  return text + fmt::format("hash      {}\n", plan.hash);
}

}  // namespace

std::string ToText(const Plan& plan) {
  std::string text = Head(plan);
  if (!plan.groups.empty()) text += Summary(plan);
  for (const KvGroup& group : plan.groups) text += GroupText(group);
  return text + Tail(plan);
}

}  // namespace ashlar
