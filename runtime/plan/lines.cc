#include <fmt/format.h>

#include "plan/plan.h"

namespace ashlar {
namespace {

// A value with spaces stands in quotes, so that key=value stays readable by machines.
std::string Value(const std::string& text) {
  return text.find(' ') == std::string::npos ? text : "\"" + text + "\"";
}

std::string SelectionLine(const Plan& plan, const KvGroup& group, const AttentionGroup& attention) {
  int64_t ratio = group.block_tokens / group.kernel_block_tokens;
  return fmt::format(
      "[select] group={} attn={} kind={} backend={} requested={} reason={} block={} kernel={} "
      "layout={} shape=[{},{},{},{}] device={}:{}",
      group.index, attention.index, Name(group.kind), attention.backend(),
      Value(attention.requested), Value(attention.reason), group.block_tokens,
      group.kernel_block_tokens, Name(plan.layout), group.blocks * ratio, group.head_slots,
      group.states / ratio, group.content_bytes, plan.platform, plan.device_number);
}

}  // namespace

std::vector<std::string> SelectionLines(const Plan& plan) {
  std::vector<std::string> lines;
  for (const KvGroup& group : plan.groups) {
    for (const AttentionGroup& attention : group.attention)
      lines.push_back(SelectionLine(plan, group, attention));
  }
  if (!plan.groups.empty())
    lines.push_back(fmt::format("Using {} KV cache layout.", Name(plan.layout)));
  return lines;
}

}  // namespace ashlar
