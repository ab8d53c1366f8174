// The memory of every group's blocks, and the views of it that kernels get.
#pragma once

#include <memory>
#include <vector>

#include "device/device.h"
#include "kv/allocation.h"
#include "model/forward.h"
#include "plan/plan.h"
#include "plan/shapes.h"

namespace ashlar {

// Owned by the engine thread.
class KvArena {
 public:
  // Lays the layers of the plan over the memory and checks the views (plan/shapes.h) before
  // returning.
  static Result<std::unique_ptr<KvArena>> Create(const Plan& plan, const Device& device,
                                                 KvAllocation memory);

  // One per model layer, in layer order.
  const std::vector<LayerKv>& layers() const { return layers_; }
  int64_t bytes() const { return memory_.buffer.bytes(); }
  // With the blocks that they really have.
  const std::vector<KvGroup>& groups() const { return memory_.groups; }

  // The views as they are, for the shape check and its mutation tests.
  std::vector<AllocatedView> Views() const;

 private:
  KvAllocation memory_;
  std::vector<LayerKv> layers_;
};

}  // namespace ashlar
