#include <fmt/format.h>

#include <map>
#include <span>

#include "base/bytes.h"
#include "plan/candidate_text.h"
#include "plan/plan.h"
#include "plan/table.h"

namespace ashlar {
namespace {

constexpr size_t kRangesOnScreen = 4;

// "0-4, 6-10"; of many ranges the first two and the last, and how many layers there are:
// "0-2, 4-6, ... 60-62 (48)".
std::string Ranges(const std::vector<int>& layers, bool full) {
  std::vector<std::string> ranges;
  for (size_t i = 0; i < layers.size();) {
    size_t last = i;
    while (last + 1 < layers.size() && layers[last + 1] == layers[last] + 1) ++last;
    ranges.push_back(last == i ? fmt::format("{}", layers[i])
                               : fmt::format("{}-{}", layers[i], layers[last]));
    i = last + 1;
  }
  if (full || ranges.size() <= kRangesOnScreen) return fmt::format("{}", fmt::join(ranges, ", "));
  return fmt::format("{}, {}, ... {} ({})", ranges[0], ranges[1], ranges.back(), layers.size());
}

std::string Head(const Plan& plan) {
  std::string text = fmt::format("plan for {} ({}) on {} ({}), device {}: {}", plan.model_name,
                                 plan.model.architecture, plan.platform, plan.platform_name,
                                 plan.device_number, plan.product);
  if (plan.threads > 0)
    text += fmt::format(", {} thread{}", plan.threads, plan.threads == 1 ? "" : "s");
  return text + fmt::format(
                    "\n\ncontext   {} tokens ({})\nlimits    {} sequences, {} tokens a step\n"
                    "numerics  {}\n{}",
                    plan.context_length, plan.context_reason, plan.max_sequences, plan.batch_tokens,
                    plan.invariant ? "invariant" : "fast",
                    plan.quantization.empty()
                        ? ""
                        : fmt::format("weights   {}, quantised when loaded\n", plan.quantization));
}

std::string Summary(const Plan& plan, bool full) {
  std::vector<TableRow> rows = {{"group", "name", "layers", "backend", "requested", "KV", "block",
                                 "kernel", "blocks", "bytes"}};
  for (const KvGroup& group : plan.groups) {
    for (const AttentionGroup& attention : group.attention) {
      rows.push_back({fmt::format("{}.{}", group.index, attention.index), group.name,
                      Ranges(attention.layers, full), std::string(attention.backend()),
                      attention.requested, std::string(Info(group.dtype).name),
                      std::to_string(group.block_tokens), std::to_string(group.kernel_block_tokens),
                      std::to_string(group.blocks), FormatBytes(group.bytes())});
    }
  }
  return "\nKV groups\n" + Table(rows);
}

std::string Steps(std::span<const BlockStep> steps) {
  std::string text;
  for (const BlockStep& step : steps) {
    if (!text.empty()) text += " -> ";
    text += step.tokens == 0 ? step.reason
                             : fmt::format("{} {} ({})", step.stage, step.tokens, step.reason);
  }
  return text;
}

// One group after the other; candidates that an earlier one showed are not shown again.
class GroupTexts {
 public:
  explicit GroupTexts(bool full) : full_(full) {}

  std::string Of(const KvGroup& group) {
    std::string text = fmt::format("\ngroup {} {}", group.index, group.name);
    if (group.window > 0) text += fmt::format(", window {}", group.window);
    text += "\n";
    for (const AttentionGroup& attention : group.attention) text += Attention(group, attention);
    text += fmt::format("  {}\n", Steps(std::span(group.block_steps).last(1)));
    text += fmt::format("  page [{}, {}, {}] = {} a layer, {} a block", group.head_slots,
                        group.states, group.content_bytes, FormatBytes(group.page_bytes),
                        FormatBytes(group.page_bytes * static_cast<int64_t>(group.layers.size())));
    if (full_)
      text +=
          fmt::format("; strides [{}], offset {}", fmt::join(group.strides, ", "), group.offset);
    return text + "\n";
  }

 private:
  std::string Attention(const KvGroup& group, const AttentionGroup& attention) {
    std::string name = fmt::format("{}.{}", group.index, attention.index);
    if (attention.backend().empty()) return fmt::format("  {}: none, {}\n", name, attention.reason);
    std::string text = fmt::format("  {}: {}, {}; {} heads on {} KV heads of {}\n", name,
                                   BackendText(attention), attention.reason, attention.layer.heads,
                                   attention.layer.kv_heads, attention.layer.head_dim);
    auto [first, is_new] = shown_.try_emplace(CandidatesText(attention, full_), name);
    return text + (is_new ? first->first : fmt::format("    candidates as of {}\n", first->second));
  }

  bool full_;
  std::map<std::string, std::string> shown_;  // candidates -> the first attention group with them
};

std::string Memory(const MemoryBudget& memory) {
  return "\nmemory\n" + Table({{"free", FormatBytes(memory.free_bytes)},
                               {"weights", FormatBytes(memory.weight_bytes)},
                               {"workspace", FormatBytes(memory.workspace_bytes)},
                               {"graphs", FormatBytes(memory.graph_bytes)},
                               {"KV cache", FormatBytes(memory.kv_bytes),
                                fmt::format("of at most {}", FormatBytes(memory.kv_limit_bytes))}});
}

std::string Tail(const Plan& plan) {
  std::string text = "\n";
  if (!plan.groups.empty()) {
    std::span<const BlockStep> steps = plan.groups.front().block_steps;  // alike but for the last
    text += fmt::format("block     {}\n", Steps(steps.first(steps.size() - 1)));
  }
  text += fmt::format("layout    {} ({})\n", Name(plan.layout), plan.layout_reason);
  text +=
      fmt::format("prefix    reused in units of {} tokens; scheduler block {}, smallest block {}\n",
                  plan.hash_block_tokens, plan.scheduler_block_tokens, plan.cache_block_tokens);
  text += fmt::format("capacity  {:.1f} sequences of {} tokens, {} each\n", plan.memory.sequences,
                      plan.context_length, FormatBytes(plan.memory.sequence_bytes));
  for (const std::string& note : plan.notes) text += fmt::format("note      {}\n", note);
  return text + fmt::format("hash      {}\n", plan.hash);
}

}  // namespace

std::string ToText(const Plan& plan, bool full) {
  std::string text = Head(plan);
  if (!plan.groups.empty()) text += Summary(plan, full);
  GroupTexts groups(full);
  for (const KvGroup& group : plan.groups) text += groups.Of(group);
  return text + Memory(plan.memory) + Tail(plan);
}

}  // namespace ashlar
