#include "kv/allocation.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/checked.h"
#include "base/log.h"
#include "kv/block_table.h"
#include "plan/layout.h"

namespace ashlar {
namespace {

// A refused allocation does not say what would have fitted: sixteen tries find it to a sixteenth.
constexpr int64_t kTries = 16;
constexpr int64_t kPoolPadding = 64;  // between two pools, at most

int64_t GroupEnd(const KvGroup& group) {
  int64_t extents[] = {static_cast<int64_t>(group.layers.size()), group.blocks, group.head_slots,
                       group.states};
  int64_t end = group.offset + group.content_bytes;
  for (int axis = 0; axis < 4; ++axis) {
    auto reach = CheckedMul(extents[axis] - 1, group.strides[axis]);
    auto sum = reach ? CheckedAdd(end, *reach) : std::nullopt;
    Check(sum.has_value(), "the plan's strides stay within 64 bits");
    end = *sum;
  }
  return end;
}

int64_t BlockBytes(const KvGroup& group) {
  return group.page_bytes * static_cast<int64_t>(group.layers.size());
}

// Blocks that one sequence of the context takes; 0 in a group that caches nothing.
int64_t BlocksEach(const Plan& plan, const KvGroup& group) {
  if (group.blocks == 0) return 0;
  KvGroupShape shape{group.block_tokens, group.kernel_block_tokens, group.window, group.blocks};
  return shape.BlocksFor(plan.context_length, plan.batch_tokens);
}

struct Need {
  int64_t sequence_bytes = 0;  // of the context, in all groups
  int64_t fixed_bytes = 0;     // null blocks, and what lies between pools
};
Need NeedOf(const Plan& plan) {
  Need need;
  for (const KvGroup& group : plan.groups) {
    if (group.blocks == 0) continue;
    need.sequence_bytes += BlocksEach(plan, group) * BlockBytes(group);
    need.fixed_bytes += BlockBytes(group) + kPoolPadding;
  }
  return need;
}

// Every group with room for equally many sequences within `bytes`.
std::vector<KvGroup> Lowered(const Plan& plan, const Need& need, int64_t bytes) {
  std::vector<KvGroup> groups = plan.groups;
  for (KvGroup& group : groups) {
    if (group.blocks == 0) continue;
    int64_t fit = static_cast<int64_t>(__int128{bytes - need.fixed_bytes} *
                                       BlocksEach(plan, group) / need.sequence_bytes);
    group.blocks = std::min(group.blocks, 1 + fit);
  }
  Check(PlaceGroups(groups, plan.layout).has_value(), "fewer blocks than planned can be placed");
  return groups;
}

// What the workspace and captured graphs take once the pools are there.
int64_t LaterBytes(const Plan& plan) {
  return plan.memory.workspace_bytes + plan.memory.graph_bytes;
}

Problem DoesNotFit(const Plan& plan, int64_t planned, int64_t room, int64_t least,
                   const Problems& refusals) {
  std::string found = fmt::format("{} were planned", FormatBytes(planned));
  if (room < planned)
    found += fmt::format(", {} are free now", FormatBytes(std::max<int64_t>(room, 0)));
  if (!refusals.empty()) found += ", and the device refuses: " + refusals.front().found;
  return {"kv.memory", std::move(found),
          fmt::format("at least {}: one sequence of {} tokens", FormatBytes(least),
                      plan.context_length),
          "lower contextLength or limits.batchTokens, or free memory of the device"};
}

void LogLowered(const Plan& plan, const KvAllocation& memory, int64_t planned) {
  LogWarning("kv", "{} planned, {} allocated: less is free than when the plan was made",
             FormatBytes(planned), FormatBytes(memory.buffer.bytes()));
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    LogWarning("kv", "group {}: {} blocks planned, {} allocated", plan.groups[g].name,
               plan.groups[g].blocks - 1, memory.groups[g].blocks - 1);
  }
}

}  // namespace

int64_t ArenaBytes(const std::vector<KvGroup>& groups) {
  int64_t bytes = 0;
  for (const KvGroup& group : groups) bytes = std::max(bytes, GroupEnd(group));
  return bytes;
}

Result<KvAllocation> AllocateKv(const Plan& plan, const Device& device, int64_t room) {
  const int64_t planned = ArenaBytes(plan.groups);
  const Need need = NeedOf(plan);
  const int64_t least = need.sequence_bytes + need.fixed_bytes;
  // Kept free until the pools have their place, where only the device knows what is left.
  Buffer later;
  if (room == kAnyRoom && LaterBytes(plan) > 0) {
    Result<Buffer> held = device.Alloc(LaterBytes(plan));
    if (!held) return DoesNotFit(plan, planned, room, least, held.problems());
    later = std::move(*held);
  }
  Problems refusals;
  if (planned <= room) {
    Result<Buffer> whole = device.Alloc(planned);
    if (whole.ok()) return KvAllocation{std::move(*whole), plan.groups};
    refusals = whole.problems();
  }
  const int64_t step = std::max<int64_t>(planned / kTries, 1);
  int64_t bytes = planned <= room ? planned - step : room;
  while (bytes >= least) {
    std::vector<KvGroup> groups = Lowered(plan, need, bytes);
    Result<Buffer> part = device.Alloc(ArenaBytes(groups));
    if (part.ok()) {
      KvAllocation memory{std::move(*part), std::move(groups)};
      LogLowered(plan, memory, planned);
      return memory;
    }
    refusals = part.problems();
    if (bytes == least) break;
    bytes = std::max(bytes - step, least);
  }
  return DoesNotFit(plan, planned, room, least, refusals);
}

}  // namespace ashlar
