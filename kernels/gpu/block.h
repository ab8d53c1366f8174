// What all threads of a block find out together. Orders are fixed, so results are the same each
// time. Every thread of the block calls them; `scratch` holds one value a wave.
#pragma once

#include "gpu.h"

namespace ashlar::gpu_kernels {

template <int kWave, class T, class Op>
GPU_DEVICE T WaveReduce(T value, Op op) {
#pragma unroll
  for (int mask = kWave / 2; mask > 0; mask /= 2) {
    value = op(value, gpu::ShuffleXor<kWave>(value, mask));
  }
  return value;
}

template <int kWave, class T, class Op>
GPU_DEVICE T BlockReduce(T value, T* scratch, Op op) {
  const int thread = gpu::ThreadX(), waves = gpu::ThreadsX() / kWave;
  value = WaveReduce<kWave>(value, op);
  gpu::SyncBlock();  // readers of an earlier result are done
  if (thread % kWave == 0) scratch[thread / kWave] = value;
  gpu::SyncBlock();
  value = scratch[0];
  for (int wave = 1; wave < waves; ++wave) value = op(value, scratch[wave]);
  return value;
}

// The sum of the values of the threads before this one; *total that of all.
template <int kWave, class T>
GPU_DEVICE T BlockPrefix(T value, T* scratch, T* total) {
  const int thread = gpu::ThreadX(), lane = thread % kWave, waves = gpu::ThreadsX() / kWave;
  T through = value;
#pragma unroll
  for (int step = 1; step < kWave; step *= 2) {
    const T before = gpu::Shuffle<kWave>(through, lane < step ? lane : lane - step);
    if (lane >= step) through += before;
  }
  gpu::SyncBlock();
  if (lane == kWave - 1) scratch[thread / kWave] = through;
  gpu::SyncBlock();
  T before = through - value, sum = 0;
  for (int wave = 0; wave < waves; ++wave) {
    if (wave == thread / kWave) before += sum;
    sum += scratch[wave];
  }
  *total = sum;
  return before;
}

}  // namespace ashlar::gpu_kernels
