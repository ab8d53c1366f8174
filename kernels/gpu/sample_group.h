// The first pass of sampling, the only one that reads all logits of every row: 32 threads keep a
// slice in registers and leave the best and the weight of each group. No thread waits for more than
// its neighbour. Bound by the bytes of the logits.
#pragma once

#include "sample_rank.h"

namespace ashlar::gpu_kernels {

inline constexpr int kGroupThreads = 128;  // of a block: four slices

// Of `left` logits to the row's end; past it stands -kLargestFloat.
GPU_DEVICE void LoadSlice(const float* logits, int left, bool aligned, float (*value)[4]) {
  const int thread = gpu::ThreadX() % kSliceThreads;
  if (aligned && left >= kSlice) {
    gpu::Vector vector[kSliceVectors];
#pragma unroll
    for (int v = 0; v < kSliceVectors; ++v) {
      vector[v] = reinterpret_cast<const gpu::Vector*>(logits)[v * kSliceThreads + thread];
    }
#pragma unroll
    for (int v = 0; v < kSliceVectors; ++v) {
#pragma unroll
      for (int j = 0; j < 4; ++j) value[v][j] = FromBits(vector[v].word[j]);
    }
    return;
  }
#pragma unroll
  for (int v = 0; v < kSliceVectors; ++v) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int place = v * kVectorStride + 4 * thread + j;
      value[v][j] = place < left ? logits[place] : -kLargestFloat;
    }
  }
}

template <int kWave>
GPU_KERNEL void GPU_BOUNDS(kGroupThreads, 5) GroupKernel(const SampleParams p) {
  gpu::ReleaseNext();
  if constexpr (gpu::RunsWave<kWave>()) {
    const int thread = gpu::ThreadX() % kSliceThreads, row = gpu::BlockY();
    const int slice =
        gpu::BlockX() * (kGroupThreads / kSliceThreads) + gpu::ThreadX() / kSliceThreads;
    // Compared as it is: ptxas 13.0 takes a count clamped to 0..kSlice for a whole slice.
    const int first = slice * kSlice, left = p.vocab - first;
    gpu::WaitForPrevious();
    float value[kSliceVectors][4];
    LoadSlice(p.logits + row * p.pitch + first, left, p.aligned, value);
    const Settings settings(p.draws[row], p.vocab);  // under way beside the logits

    // Four of each: sums of few are nearer, and none waits for the one before.
    float best[4], nothing[4] = {}, mass[4] = {};
#pragma unroll
    for (int j = 0; j < 4; ++j) best[j] = value[0][j];
#pragma unroll
    for (int v = 0; v < kSliceVectors; ++v) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        best[j] = fmaxf(best[j], value[v][j]);
        nothing[j] = fmaf(value[v][j], 0.0f, nothing[j]);  // NaN once a value is not finite
      }
    }
    Group group{fmaxf(fmaxf(best[0], best[1]), fmaxf(best[2], best[3])), 0};
    group.best = fmaxf(group.best, gpu::ShuffleXor<kWave>(group.best, 1));
    float none = nothing[0] + nothing[1] + (nothing[2] + nothing[3]);
    none += gpu::ShuffleXor<kWave>(none, 1);

    if (settings.greedy) {
      uint32_t id = 0xffffffffu;
#pragma unroll
      for (int i = 4 * kSliceVectors - 1; i >= 0; --i) {
        const int place = first + i / 4 * kVectorStride + 4 * thread + i % 4;
        if (value[i / 4][i % 4] == group.best) id = static_cast<uint32_t>(place);
      }
      const uint32_t other = gpu::ShuffleXor<kWave>(id, 1);
      group.rest = id < other ? id : other;
    } else if (settings.Weighs()) {
      if (left < kSlice) {
#pragma unroll
        for (int i = 0; i < 4 * kSliceVectors; ++i) {
          const int place = i / 4 * kVectorStride + 4 * thread + i % 4;
          if (place >= left) value[i / 4][i % 4] = -INFINITY;
        }
      }
#pragma unroll
      for (int v = 0; v < kSliceVectors; ++v) {
#pragma unroll
        for (int j = 0; j < 4; ++j) mass[j] += settings.Weight(value[v][j], group.best);
      }
      float sum = mass[0] + mass[1] + (mass[2] + mass[3]);
      sum += gpu::ShuffleXor<kWave>(sum, 1);
      group.rest = ToBits(sum);
    }
    if (!(none == 0)) group.best = FromBits(0x7fffffffu);
    if (thread % 2 == 0 && slice < p.slices) {
      p.groups[(int64_t{row} * p.slices + slice) * kSliceGroups + thread / 2] = group;
    }
  } else {
    gpu::WaitForPrevious();
  }
}

}  // namespace ashlar::gpu_kernels
