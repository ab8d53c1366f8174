// The memory of all pools. The plan's number of blocks is an upper bound: it is lowered once, here,
// to what the device gives after weights and workspace.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "device/device.h"
#include "plan/plan.h"

namespace ashlar {

struct KvAllocation {
  Buffer buffer;
  std::vector<KvGroup> groups;  // as planned, or with fewer blocks and placed anew
};

// For a device whose free memory only an allocation can tell.
inline constexpr int64_t kAnyRoom = std::numeric_limits<int64_t>::max();

// Takes what the plan says, or as much as `room` bytes and the device allow; without a room, what
// the plan keeps for workspace and graphs stays free. What was lowered is logged. Refuses when one
// sequence of the plan's context no longer fits.
Result<KvAllocation> AllocateKv(const Plan& plan, const Device& device, int64_t room);

// Bytes from the arena's start to the last one that a layer of these groups can reach.
int64_t ArenaBytes(const std::vector<KvGroup>& groups);

}  // namespace ashlar
