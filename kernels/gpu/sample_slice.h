// The first pass of sampling, the only one that reads all logits of every row: a block takes a
// slice of a row, keeps it in registers and leaves what the row's block needs. Bound by the bytes
// of the logits.
#pragma once

#include <cmath>

#include "ashlar_plugin.h"
#include "block.h"
#include "number.h"

namespace ashlar::gpu_kernels {

inline constexpr int kSliceThreads = 512;
inline constexpr int kSliceVectors = 4;  // of four logits, a thread
inline constexpr int kSlice = kSliceThreads * kSliceVectors * 4;
inline constexpr int kMostCandidates = 1024;  // of a slice

// What is left of a slice.
struct Slice {
  float best, least;
  int32_t best_id;     // the lowest of its best
  int32_t finite;      // 0: a number is none
  float mass;          // sum of its weights, the best weighing 1
  float bound;         // all its logits from here up are candidates; infinity: too many
  int32_t candidates;  // kept for it
  int32_t unused;
};

struct SampleParams {
  const float* logits;  // [n, vocab]
  int64_t pitch;        // elements between rows
  bool aligned;         // rows begin at multiples of 16 bytes
  int vocab, slices;    // of a row
  const ashlar_draw* draws;
  Slice* slice;          // [n, slices]
  uint64_t* candidates;  // [n, slices, kMostCandidates], see Candidate
  int32_t* ids;
};

// Greater for what is better: the greater logit, of equals the lower id.
GPU_DEVICE uint64_t RankOf(float logit, int32_t id) {
  const uint32_t bits = ToBits(logit + 0.0f);  // both zeros are equal
  const uint32_t ordered = bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
  return uint64_t{ordered} << 32 | (0xffffffffu - static_cast<uint32_t>(id));
}
GPU_DEVICE float LogitOf(uint64_t rank) {
  const uint32_t ordered = static_cast<uint32_t>(rank >> 32);
  return FromBits(ordered >> 31 != 0 ? ordered & 0x7fffffffu : ~ordered);
}
GPU_DEVICE int32_t IdOf(uint64_t rank) {
  return static_cast<int32_t>(0xffffffffu - static_cast<uint32_t>(rank));
}

// How the first pass hands on a logit, cheap to make.
GPU_DEVICE uint64_t Candidate(float logit, int32_t id) {
  return uint64_t{static_cast<uint32_t>(id)} << 32 | ToBits(logit);
}
GPU_DEVICE uint64_t RankOfCandidate(uint64_t candidate) {
  return RankOf(FromBits(static_cast<uint32_t>(candidate)), static_cast<int32_t>(candidate >> 32));
}

// The draw as the kernels use it.
struct Settings {
  bool greedy;
  float per_logit;  // log2 of a weight for each unit of a logit
  int top_k;        // 0: all
  float top_p, min_p;
  float min_depth;  // a logit so far below the best weighs min_p of it

  GPU_DEVICE Settings(const ashlar_draw& draw, int vocab) {
    per_logit = 1.44269504f / draw.temperature;
    // Not above 0, or so cold that only ties with the best could come.
    greedy = !(draw.temperature > 0) || per_logit > 3.4e38f;
    top_k = draw.top_k > 0 && draw.top_k < vocab ? draw.top_k : 0;
    top_p = draw.top_p;
    min_p = draw.min_p;
    min_depth = min_p > 0 ? fminf(0, draw.temperature * logf(min_p)) : 0;
  }
  GPU_DEVICE bool Ranks() const { return top_k > 0 || top_p < 1; }
  GPU_DEVICE bool Cuts() const { return Ranks() || min_p > 0; }
  GPU_DEVICE float Weight(float logit, float best) const {
    return gpu::Exp2((logit - best) * per_logit);
  }
};

// Element i of a thread is logit Place(thread, i) of the slice.
GPU_DEVICE int Place(int thread, int i) { return i / 4 * (4 * kSliceThreads) + 4 * thread + i % 4; }

// Past the end the last one stands again.
GPU_DEVICE void LoadSlice(const float* logits, int count, bool aligned, float* value) {
  const int thread = gpu::ThreadX();
  if (aligned && count == kSlice) {
    gpu::Vector vector[kSliceVectors];
#pragma unroll
    for (int i = 0; i < kSliceVectors; ++i) {
      vector[i] = reinterpret_cast<const gpu::Vector*>(logits)[i * kSliceThreads + thread];
    }
#pragma unroll
    for (int i = 0; i < 4 * kSliceVectors; ++i) value[i] = FromBits(vector[i / 4].word[i % 4]);
    return;
  }
#pragma unroll
  for (int i = 0; i < 4 * kSliceVectors; ++i) {
    const int place = Place(thread, i);
    value[i] = logits[place < count ? place : count - 1];
  }
}

// Keeps the logits from `bound` up, in a fixed order. Returns how many there are.
template <int kWave>
GPU_DEVICE int KeepCandidates(const float* value, float bound, int first_id, int* scratch,
                              uint64_t* candidates) {
  constexpr int kValues = 4 * kSliceVectors;
  int mine = 0, all = 0;
#pragma unroll
  for (int i = 0; i < kValues; ++i) mine += value[i] >= bound ? 1 : 0;
  candidates += BlockSumBefore<kWave>(mine, scratch, &all);
  if (all > kMostCandidates || mine == 0) return all;
  first_id += Place(gpu::ThreadX(), 0);
#pragma unroll
  for (int i = 0; i < kValues; ++i) {
    if (value[i] >= bound) *candidates++ = Candidate(value[i], first_id + Place(0, i));
  }
  return all;
}

template <int kWave>
GPU_KERNEL void GPU_BOUNDS(kSliceThreads, 3) SliceKernel(const SampleParams p) {
  gpu::ReleaseNext();
  gpu::WaitForPrevious();
  if constexpr (gpu::RunsWave<kWave>()) {
    constexpr int kValues = 4 * kSliceVectors, kWaves = kSliceThreads / kWave;
    constexpr float kInfinity = INFINITY, kLowest = -3.402823466e38f;
    float* scratch = reinterpret_cast<float*>(gpu::SharedMemory());  // [4, kWaves]
    const int thread = gpu::ThreadX(), row = gpu::BlockY(), first_id = gpu::BlockX() * kSlice;
    const int count = p.vocab - first_id < kSlice ? p.vocab - first_id : kSlice;
    const Settings settings(p.draws[row], p.vocab);
    float value[kValues];
    LoadSlice(p.logits + row * p.pitch + first_id, count, p.aligned, value);

    float mine = -kInfinity, least = kInfinity, nothing = 0;
#pragma unroll
    for (int i = 0; i < kValues; ++i) {
      mine = fmaxf(mine, value[i]);
      least = fminf(least, value[i]);
      nothing = fmaf(value[i], 0.0f, nothing);  // NaN once a value is not finite
    }
    const auto max = [](float a, float b) { return fmaxf(a, b); };
    const auto min = [](float a, float b) { return fminf(a, b); };
    // The least of 64 groups' best: 64 logits of the slice at least are as good.
    float group = fmaxf(mine, gpu::ShuffleXor<kWave>(mine, 1));
    group = fmaxf(group, gpu::ShuffleXor<kWave>(group, 2));
    group = fmaxf(group, gpu::ShuffleXor<kWave>(group, 4));
    float best = WaveReduce<kWave>(mine, max);
    least = WaveReduce<kWave>(least, min);
    group = WaveReduce<kWave>(group, min);
    nothing = WaveReduce<kWave>(nothing, [](float a, float b) { return a + b; });
    if (thread % kWave == 0) {
      float* out = scratch + thread / kWave;
      out[0] = best, out[kWaves] = least, out[2 * kWaves] = group, out[3 * kWaves] = nothing;
    }
    gpu::SyncBlock();
    for (int wave = 0; wave < kWaves; ++wave) {
      best = fmaxf(best, scratch[wave]);
      least = fminf(least, scratch[kWaves + wave]);
      group = fminf(group, scratch[2 * kWaves + wave]);
      nothing += scratch[3 * kWaves + wave];
    }
    gpu::SyncBlock();

    Slice slice{best, least, p.vocab, nothing == 0 ? 1 : 0, 0, kLowest, 0, 0};
    if (mine == best) {
#pragma unroll
      for (int i = kValues - 1; i >= 0; --i) {
        if (value[i] == best) slice.best_id = first_id + Place(thread, i);
      }
    }
    slice.best_id = BlockReduce<kWave>(slice.best_id, reinterpret_cast<int*>(scratch),
                                       [](int a, int b) { return a < b ? a : b; });
    if (!settings.greedy) {
      float mass = 0;
#pragma unroll
      for (int i = 0; i < kValues; ++i) {
        if (count < kSlice && Place(thread, i) >= count) value[i] = -kInfinity;
        mass += settings.Weight(value[i], best);
      }
      slice.mass = BlockReduce<kWave>(mass, scratch, [](float a, float b) { return a + b; });
    }
    if (!settings.greedy && settings.Cuts()) {
      const int64_t index = int64_t{row} * p.slices + gpu::BlockX();
      uint64_t* candidates = p.candidates + index * kMostCandidates;
      int* counts = reinterpret_cast<int*>(scratch);
      slice.bound = fmaxf(kLowest, settings.Ranks() ? group : best + settings.min_depth);
      slice.candidates = KeepCandidates<kWave>(value, slice.bound, first_id, counts, candidates);
      if (slice.candidates > kMostCandidates && group > slice.bound) {
        slice.bound = group;
        slice.candidates = KeepCandidates<kWave>(value, slice.bound, first_id, counts, candidates);
      }
      if (slice.candidates > kMostCandidates) slice.candidates = 0, slice.bound = kInfinity;
    }
    if (thread == 0) p.slice[int64_t{row} * p.slices + gpu::BlockX()] = slice;
  }
}

}  // namespace ashlar::gpu_kernels
