// The one allocation that holds every group's blocks, and the views of it that kernels get.
#pragma once

#include <memory>
#include <vector>

#include "device/device.h"
#include "model/forward.h"
#include "plan/plan.h"
#include "plan/shapes.h"

namespace ashlar {

// Owned by the engine thread.
class KvArena {
 public:
  // Allocates what the plan says and checks the views (plan/shapes.h) before returning; `rows` are
  // the plugin's.
  static Result<std::unique_ptr<KvArena>> Create(const Plan& plan, const Device& device);

  // One per model layer, in layer order.
  const std::vector<LayerKv>& layers() const { return layers_; }
  int64_t bytes() const { return buffer_.bytes(); }

  // The views as they are, for the shape check and its mutation tests.
  std::vector<AllocatedView> Views(const Plan& plan) const;

 private:
  Buffer buffer_;
  std::vector<LayerKv> layers_;
};

}  // namespace ashlar
