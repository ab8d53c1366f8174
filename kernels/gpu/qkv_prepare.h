// The launch of a preparation whose arguments have been checked.
#pragma once

#include "ashlar_plugin.h"
#include "gpu.h"

namespace ashlar::gpu_kernels {

gpu::Error LaunchPrepare(const gpu::Facts& facts, gpu::Stream stream,
                         const ashlar_qkv_prepare& args);

}  // namespace ashlar::gpu_kernels
