#include "plan/memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/checked.h"
#include "plan/block_size.h"

namespace ashlar {
namespace {

// For a model that does not say how far it was trained.
constexpr int64_t kDefaultContext = 4096;
// Enough for the graphs of a few dozen batch sizes.
constexpr int64_t kGraphBytes = int64_t{512} << 20;
// Positions are 32-bit in every kernel.
constexpr int64_t kMostTokens = INT32_MAX;

std::vector<PoolNeed> NeedsOf(const Plan& plan) {
  std::vector<PoolNeed> needs;
  for (const KvGroup& group : plan.groups) {
    needs.push_back({group.cache, group.block_tokens,
                     group.page_bytes * static_cast<int64_t>(group.layers.size())});
  }
  return needs;
}

bool Caches(const PoolNeed& need) { return Info(need.cache.kind).retention != Retention::kNothing; }

// What is left for the cache of `left` bytes under the spec's share or amount.
int64_t Limit(const MemoryAmount& amount, int64_t left) {
  if (amount.bytes) return *amount.bytes;
  int64_t percent = amount.percent.value_or(80);
  return left / 100 * percent + left % 100 * percent / 100;
}

std::string AmountText(const MemoryAmount& amount) {
  return amount.bytes ? FormatBytes(*amount.bytes)
                      : fmt::format("{}%", amount.percent.value_or(80));
}

Problem WeightsDoNotFit(const Spec& spec, const DeviceInfo& device, const MemoryBudget& memory) {
  int64_t needed = memory.weight_bytes + memory.workspace_bytes + memory.graph_bytes;
  return {spec.origins.Place("source"),
          fmt::format("weights take {} and workspace {}, {} is free on {}; {} missing",
                      FormatBytes(memory.weight_bytes),
                      FormatBytes(memory.workspace_bytes + memory.graph_bytes),
                      FormatBytes(memory.free_bytes), device.platform,
                      FormatBytes(needed - memory.free_bytes)),
          fmt::format("at most {} in all", FormatBytes(memory.free_bytes)),
          "choose a smaller model or weight type, lower limits.batchTokens or limits.sequences, or "
          "give the process more memory"};
}

Problem AmountTooLarge(const Spec& spec, const MemoryBudget& memory, int64_t left) {
  return {spec.origins.Place("kv.memory"),
          fmt::format("{} is more than what is left", FormatBytes(memory.kv_limit_bytes)),
          fmt::format("at most {}: {} free, less weights {} and workspace {}", FormatBytes(left),
                      FormatBytes(memory.free_bytes), FormatBytes(memory.weight_bytes),
                      FormatBytes(memory.workspace_bytes + memory.graph_bytes)),
          "lower kv.memory, or state a share such as 80%"};
}

// Which of the smaller things that the user can state serves best.
std::string Less(const Plan& plan, const Spec& spec, int64_t longest) {
  if (longest > 0) return fmt::format("lower contextLength to {}", longest);
  // Not even one block fits: a smaller one may.
  if (spec.kv.block_size > kDefaultBlockTokens)
    return fmt::format("lower kv.blockSize from {}", spec.kv.block_size);
  return plan.groups.front().dtype == DType::kF32 ? "lower limits.batchTokens"
                                                  : "choose a smaller model";
}

// What a larger kv.memory would have to be, as the spec states it.
std::string LargerMemory(const Spec& spec, int64_t needed, int64_t left) {
  if (needed > left)
    return fmt::format("give the process {} more memory", FormatBytes(needed - left));
  if (spec.kv.memory.bytes)
    return fmt::format("set kv.memory to at least {}MiB", CeilDiv(needed, int64_t{1} << 20));
  int64_t percent = static_cast<int64_t>((__int128{needed} * 100 + left - 1) / left);
  return fmt::format("set kv.memory to at least {}%", std::max<int64_t>(percent, 1));
}

Problem ContextDoesNotFit(const Plan& plan, const Spec& spec, int64_t length, int64_t longest,
                          int64_t needed, int64_t left) {
  const MemoryBudget& memory = plan.memory;
  bool asked = spec.context_length.has_value();
  std::string smaller = plan.groups.front().dtype == DType::kF32 ? "set kv.dtype to bfloat16"
                                                                 : "lower limits.batchTokens";
  return {spec.origins.Place(asked ? "contextLength" : "kv.memory"),
          fmt::format(
              "{} tokens need {} of KV cache, {} is there; {} missing (free {}, weights {}, "
              "workspace {}, kv.memory {})",
              length, FormatBytes(needed), FormatBytes(memory.kv_limit_bytes),
              FormatBytes(needed - memory.kv_limit_bytes), FormatBytes(memory.free_bytes),
              FormatBytes(memory.weight_bytes),
              FormatBytes(memory.workspace_bytes + memory.graph_bytes), AmountText(spec.kv.memory)),
          longest > 0 ? fmt::format("at most {} tokens", longest) : "at least one block a group",
          fmt::format("{}, {} or {}", Less(plan, spec, longest), LargerMemory(spec, needed, left),
                      smaller)};
}

// The context that was asked for, or the model's own.
int64_t WantedContext(Plan& plan, const Spec& spec, Problems& problems) {
  int64_t own = std::min(plan.model.context_length, kMostTokens);
  if (!spec.context_length) {
    plan.context_reason = own > 0 ? "the model's own" : "default: the model states none";
    return own > 0 ? own : kDefaultContext;
  }
  plan.context_reason = "contextLength";
  int64_t asked = *spec.context_length, most = own > 0 ? own : kMostTokens;
  if (asked < 1 || asked > most) {
    problems.push_back({spec.origins.Place("contextLength"),
                        asked < 1 ? fmt::format("{} is no length", asked)
                                  : fmt::format("{} is more than the model was trained for", asked),
                        fmt::format("1 to {}", most), fmt::format("set it to {} or less", most)});
  }
  return std::clamp<int64_t>(asked, 1, kMostTokens);
}

// Captured graphs keep their own buffers; a CPU captures none.
int64_t GraphBytes(const DeviceInfo& device) {
  return device.platform == "cuda" || device.platform == "hip" ? kGraphBytes : 0;
}

// Fills the budget; returns what is left beside all that is not KV cache.
int64_t FillBudget(Plan& plan, const Spec& spec, const DeviceInfo& device, int64_t weight_bytes,
                   int64_t workspace_bytes) {
  plan.memory.free_bytes = device.free_bytes;
  plan.memory.weight_bytes = weight_bytes;
  plan.memory.workspace_bytes = workspace_bytes;
  plan.memory.graph_bytes = GraphBytes(device);
  int64_t left = device.free_bytes - weight_bytes - workspace_bytes - plan.memory.graph_bytes;
  plan.memory.kv_limit_bytes = Limit(spec.kv.memory, std::max<int64_t>(left, 0));
  return left;
}

void CutContext(Plan& plan, int64_t longest, int64_t needed) {
  plan.notes.push_back(fmt::format(
      "contextLength: cut from {} to {} tokens: one sequence needs {} of KV cache, "
      "{} is there",
      plan.context_length, longest, FormatBytes(needed), FormatBytes(plan.memory.kv_limit_bytes)));
  plan.context_reason = fmt::format("cut from {} to what fits", plan.context_length);
  plan.context_length = longest;
}

// Blocks of every group, and how many sequences they hold together.
void FillPools(Plan& plan, const std::vector<PoolNeed>& needs, int sequences) {
  std::vector<int64_t> blocks = SplitPool(needs, plan.memory.kv_limit_bytes, plan.context_length,
                                          plan.batch_tokens, sequences);
  plan.memory.sequence_bytes =
      SequenceBytes(needs, plan.context_length, plan.batch_tokens).value_or(0);
  plan.memory.sequences = plan.max_sequences;
  for (size_t i = 0; i < blocks.size(); ++i) {
    plan.groups[i].blocks = blocks[i];
    int64_t each = BlocksPerRequest(needs[i].cache, needs[i].block_tokens, plan.context_length,
                                    plan.batch_tokens);
    if (each == 0) continue;
    plan.memory.sequences = std::min(
        plan.memory.sequences, static_cast<double>(blocks[i] - 1) / static_cast<double>(each));
  }
}

}  // namespace

std::optional<int64_t> SequenceBytes(const std::vector<PoolNeed>& needs, int64_t length,
                                     int64_t in_flight) {
  int64_t total = 0;
  for (const PoolNeed& need : needs) {
    std::optional<int64_t> bytes = CheckedMul(
        BlocksPerRequest(need.cache, need.block_tokens, length, in_flight), need.block_bytes);
    std::optional<int64_t> sum = bytes ? CheckedAdd(total, *bytes) : std::nullopt;
    if (!sum) return std::nullopt;
    total = *sum;
  }
  return total;
}

int64_t NullBlockBytes(const std::vector<PoolNeed>& needs) {
  int64_t total = 0;
  for (const PoolNeed& need : needs) total += Caches(need) ? need.block_bytes : 0;
  return total;
}

std::vector<int64_t> SplitPool(const std::vector<PoolNeed>& needs, int64_t bytes, int64_t length,
                               int64_t in_flight, int sequences) {
  int64_t sequence = SequenceBytes(needs, length, in_flight).value_or(0);
  int64_t shared = bytes - NullBlockBytes(needs);
  std::vector<int64_t> blocks;
  for (const PoolNeed& need : needs) {
    if (!Caches(need)) {
      blocks.push_back(0);
      continue;
    }
    int64_t each = BlocksPerRequest(need.cache, need.block_tokens, length, in_flight);
    int64_t fit = sequence > 0 ? static_cast<int64_t>(__int128{shared} * each / sequence) : 0;
    int64_t most = static_cast<int64_t>(
        std::min<__int128>(__int128{each} * sequences, __int128{INT32_MAX} - 1));
    blocks.push_back(1 + std::min(fit, most));
  }
  return blocks;
}

int64_t LongestContext(const std::vector<PoolNeed>& needs, int64_t bytes, int64_t length,
                       int64_t in_flight) {
  auto fits = [&](int64_t tokens) {
    std::optional<int64_t> sequence = SequenceBytes(needs, tokens, in_flight);
    return sequence && *sequence <= bytes - NullBlockBytes(needs);
  };
  int64_t low = 0, high = length;  // low fits, or is 0
  while (low < high) {
    int64_t middle = high - (high - low) / 2;
    if (fits(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

Problems SizeMemory(Plan& plan, const Spec& spec, const DeviceInfo& device, int64_t weight_bytes,
                    int64_t workspace_bytes) {
  Problems problems;
  int64_t length = WantedContext(plan, spec, problems);
  int64_t left = FillBudget(plan, spec, device, weight_bytes, workspace_bytes);
  if (left <= 0) {
    problems.push_back(WeightsDoNotFit(spec, device, plan.memory));
    return problems;
  }
  if (plan.memory.kv_limit_bytes > left) {
    problems.push_back(AmountTooLarge(spec, plan.memory, left));
    return problems;
  }
  plan.context_length = length;
  if (plan.groups.empty()) return problems;

  std::vector<PoolNeed> needs = NeedsOf(plan);
  int64_t longest = LongestContext(needs, plan.memory.kv_limit_bytes, length, plan.batch_tokens);
  std::optional<int64_t> sequence = SequenceBytes(needs, length, plan.batch_tokens);
  int64_t needed = sequence.value_or(INT64_MAX / 2) + NullBlockBytes(needs);
  if (longest == 0 || (longest < length && spec.context_length)) {
    problems.push_back(ContextDoesNotFit(plan, spec, length, longest, needed, left));
    return problems;
  }
  bool cut = longest < length;
  if (cut) CutContext(plan, longest, needed);
  // A context that was cut is there once: what is over may not go to some group, for it would have
  // to give it back as memory and context grow.
  FillPools(plan, needs, cut ? 1 : plan.max_sequences);
  return problems;
}

}  // namespace ashlar
