// Sums over a wave and over a block.
#pragma once

#include "gpu.h"

namespace ashlar::gpu_kernels {

template <int kWave, class T>
GPU_DEVICE T WaveSum(T value) {
#pragma unroll
  for (int mask = kWave / 2; mask > 0; mask /= 2) value += gpu::ShuffleXor<kWave>(value, mask);
  return value;
}

// `scratch` holds one float a wave of the block; every thread gets the sum.
template <int kWave>
GPU_DEVICE float BlockSum(float value, float* scratch) {
  const int thread = gpu::ThreadX(), waves = gpu::ThreadsX() / kWave;
  value = WaveSum<kWave>(value);
  gpu::SyncBlock();  // readers of an earlier sum are done
  if (thread % kWave == 0) scratch[thread / kWave] = value;
  gpu::SyncBlock();
  float sum = 0;
  for (int wave = 0; wave < waves; ++wave) sum += scratch[wave];
  return sum;
}

}  // namespace ashlar::gpu_kernels
