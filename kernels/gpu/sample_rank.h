// What both passes of sampling share: what the first leaves of a row, how logits are ranked, and a
// draw as the kernels use it.
#pragma once

#include <cmath>

#include "ashlar_plugin.h"
#include "number.h"

namespace ashlar::gpu_kernels {

// A slice is kSlice neighbouring logits: those of 32 threads, which have kSliceVectors times four
// each. The logits of two neighbouring threads are a group.
inline constexpr int kSliceThreads = 32;
inline constexpr int kSliceVectors = 16;
inline constexpr int kVectorStride = 4 * kSliceThreads;  // from a thread's four to its next
inline constexpr int kSlice = kVectorStride * kSliceVectors;
inline constexpr int kSliceGroups = kSliceThreads / 2;
inline constexpr int kGroupLogits = kSlice / kSliceGroups;

// What the first pass leaves of a group.
struct alignas(8) Group {
  float best;  // NaN where a logit is not finite; -kLargestFloat where the group is past the row
  // Greedy draws: the lowest id of its best. Where Settings::Weighs: the bits of the sum of its
  // weights, the best weighing 1.
  uint32_t rest;
};
inline constexpr float kLargestFloat = 3.402823466e38f;

struct SampleParams {
  const float* logits;  // [n, vocab]
  int64_t pitch;        // elements between rows
  bool aligned;         // rows begin at multiples of 16 bytes
  int vocab, slices;    // of a row
  const ashlar_draw* draws;
  Group* groups;  // [n, slices, kSliceGroups]
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
  GPU_DEVICE bool Cuts() const { return top_k > 0 || top_p < 1 || min_p > 0; }
  // Whether the weight of all logits is asked for.
  GPU_DEVICE bool Weighs() const { return !greedy && top_k == 0 && (top_p < 1 || !(min_p > 0)); }
  GPU_DEVICE float Weight(float logit, float best) const {
    return gpu::Exp2((logit - best) * per_logit);
  }
};

}  // namespace ashlar::gpu_kernels
