// Carries the checkpoint into device memory as the plan says.
#pragma once

#include <functional>

#include "checkpoint/checkpoint.h"
#include "device/device.h"
#include "model/forward.h"

namespace ashlar {

// Called now and then from the loading thread: bytes done of bytes in all.
using LoadProgress = std::function<void(int64_t done, int64_t total)>;

// Every tensor that the architecture needs must be there with the right shape, and every tensor in
// the file must be needed (or on the architecture's list of ignored names); else all mistakes are
// reported, naming tensor and byte range. Matrices that the plugin reads in place stay views of the
// mapped files: the checkpoint must outlive the result, and so must the device. Of a matrix that
// the plugin copies, the process keeps the copy only. With `fp8` the matrices of the layers are
// kept as E4M3.
Result<ModelWeights> LoadWeights(const Checkpoint& checkpoint, const ModelConfig& config,
                                 const Device& device, const LoadProgress& progress,
                                 bool fp8 = false);

}  // namespace ashlar
