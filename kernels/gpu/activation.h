// The gates' functions.
#pragma once

#include <cmath>

#include "ashlar_plugin.h"
#include "gpu.h"

namespace ashlar::gpu_kernels {

GPU_DEVICE float Silu(float x) { return x * gpu::Reciprocal(1.0f + gpu::Exp2(-1.44269504f * x)); }

// The tanh approximation that Gemma names gelu_pytorch_tanh; 0.79788... is sqrt(2 / pi).
GPU_DEVICE float GeluTanh(float x) {
  return 0.5f * x * (1.0f + tanhf(0.7978845608028654f * (x + 0.044715f * x * x * x)));
}

GPU_DEVICE float Activate(ashlar_activation activation, float x) {
  return activation == ASHLAR_SILU ? Silu(x) : GeluTanh(x);
}

}  // namespace ashlar::gpu_kernels
