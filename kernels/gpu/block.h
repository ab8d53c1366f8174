// What the threads of a wave or of a block find out together. Orders are fixed, so results are the
// same each time. Every thread of the wave or block calls them; `scratch` holds one value a wave.
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

// The sum of the values of the lanes up to and with this one.
template <int kWave, class T>
GPU_DEVICE T WaveSumThrough(T value) {
  const int lane = gpu::ThreadX() % kWave;
#pragma unroll
  for (int step = 1; step < kWave; step *= 2) {
    const T before = gpu::Shuffle<kWave>(value, lane < step ? lane : lane - step);
    if (lane >= step) value += before;
  }
  return value;
}

// Of as many waves at most as lanes; op(value, 0) is the value.
template <int kWave, class T, class Op>
GPU_DEVICE T BlockReduce(T value, T* scratch, Op op) {
  const int thread = gpu::ThreadX(), lane = thread % kWave, waves = gpu::ThreadsX() / kWave;
  value = WaveReduce<kWave>(value, op);
  gpu::SyncBlock();  // readers of an earlier result are done
  if (lane == 0) scratch[thread / kWave] = value;
  gpu::SyncBlock();
  return WaveReduce<kWave>(lane < waves ? scratch[lane] : T{0}, op);
}

// The sum of the values of the threads before this one; *total that of all. As many waves at most
// as lanes.
template <int kWave, class T>
GPU_DEVICE T BlockSumBefore(T value, T* scratch, T* total) {
  const int thread = gpu::ThreadX(), lane = thread % kWave, waves = gpu::ThreadsX() / kWave;
  const T through = WaveSumThrough<kWave>(value);
  gpu::SyncBlock();
  if (lane == kWave - 1) scratch[thread / kWave] = through;
  gpu::SyncBlock();
  const T sums = WaveSumThrough<kWave>(lane < waves ? scratch[lane] : T{0});
  *total = gpu::Shuffle<kWave>(sums, kWave - 1);
  const int before = thread / kWave - 1;
  const T sum = gpu::Shuffle<kWave>(sums, before < 0 ? 0 : before);
  return through - value + (before < 0 ? T{0} : sum);
}

}  // namespace ashlar::gpu_kernels
