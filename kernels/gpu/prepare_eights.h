// qkv_prepare by accesses of eight values, where types and alignment allow: a lane takes eight
// values of a head's first half and the eight of its second that they turn with, so that a wave has
// some heads of a token at once. Lanes that hold the same place of different heads find its angles
// between them. Bound by bytes.
#pragma once

#include "block.h"
#include "number.h"

namespace ashlar::gpu_kernels {

inline constexpr int kEightsThreads = 256;

struct EightsParams {
  ashlar_qkv_prepare args;
  int parts;        // waves of a token
  int block_shift;  // log2 of the cache's block_tokens, or -1
};

template <class In, int kHeadDim, int kWave, int kEach>
struct EightsWave {
  static constexpr int kLanes = kHeadDim / 16;                 // of a head
  static constexpr int kHeads = kWave / kLanes;                // at once, kEach times
  static constexpr int kAngles = kHeads < 8 ? 8 / kHeads : 1;  // that a lane finds of the eight
  static constexpr int kHalf = kHeadDim / 2;

  const ashlar_qkv_prepare& a;
  const int lane = gpu::ThreadX() % kWave, place = lane % kLanes, which = lane / kLanes;
  const int q_heads = static_cast<int>(a.q_out.shape[1]), kv_heads = a.kv.kv_heads;
  const bool halves = a.rope_style == ASHLAR_ROPE_HALF;
  float cosine[8], sine[8];

  GPU_DEVICE explicit EightsWave(const ashlar_qkv_prepare& args) : a(args) {}

  // The pair that value i of the first half belongs to, or values i of both halves: HALF pairs
  // these, INTERLEAVED neighbours, of which a lane has four pairs in each half.
  GPU_DEVICE int Pair(int i) const {
    return halves ? 8 * place + i : 4 * place + i % 4 + i / 4 * (kHeadDim / 4);
  }

  // Every lane of the wave.
  GPU_DEVICE void FindAngles(int32_t position) {
    float own_cosine[kAngles], own_sine[kAngles];
#pragma unroll
    for (int i = 0; i < kAngles; ++i) {
      const float angle =
          static_cast<float>(position) * a.inv_freq[Pair((which * kAngles + i) % 8)];
      sincosf(angle, &own_sine[i], &own_cosine[i]);
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int from = i / kAngles * kLanes + place;
      cosine[i] = gpu::Shuffle<kWave>(own_cosine[i % kAngles], from) * a.rope_scale;
      sine[i] = gpu::Shuffle<kWave>(own_sine[i % kAngles], from) * a.rope_scale;
    }
  }

  GPU_DEVICE static void Turn(float& x, float& y, float cosine, float sine) {
    const float before = x;
    x = before * cosine - y * sine;
    y = y * cosine + before * sine;
  }
  GPU_DEVICE void Rotate(float* x, float* y) const {
    if (halves) {
#pragma unroll
      for (int i = 0; i < 8; ++i) Turn(x[i], y[i], cosine[i], sine[i]);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        Turn(x[2 * i], x[2 * i + 1], cosine[i], sine[i]);
        Turn(y[2 * i], y[2 * i + 1], cosine[4 + i], sine[4 + i]);
      }
    }
  }

  // Every lane of the wave; only those with a weight are changed.
  GPU_DEVICE void Norm(const float* weight, float* x, float* y) const {
    float squares = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) squares += x[i] * x[i] + y[i] * y[i];
#pragma unroll
    for (int mask = kLanes / 2; mask > 0; mask /= 2) {
      squares += gpu::ShuffleXor<kWave>(squares, mask);
    }
    if (weight == nullptr) return;
    const float scale = gpu::InverseRoot(squares / kHeadDim + a.eps);
    float by[8];
    LoadFloats(ASHLAR_F32, weight, 8 * place, by);
#pragma unroll
    for (int i = 0; i < 8; ++i) x[i] = x[i] * scale * by[i];
    LoadFloats(ASHLAR_F32, weight, kHalf + 8 * place, by);
#pragma unroll
    for (int i = 0; i < 8; ++i) y[i] = y[i] * scale * by[i];
  }

  GPU_DEVICE static void StoreEight(ashlar_dtype dtype, char* to, int index, const float* from) {
    if (dtype != ASHLAR_F8_E4M3) return StoreFloats(dtype, to, index, from);
    EightF8 packed;
    for (int i = 0; i < 2; ++i) {
      packed.word[i] = PackF8(from[4 * i], from[4 * i + 1]) |
                       static_cast<uint32_t>(PackF8(from[4 * i + 2], from[4 * i + 3])) << 16;
    }
    memcpy(__builtin_assume_aligned(to + index, 8), &packed, sizeof packed);
  }

  GPU_DEVICE void Finish(int64_t token, int head, bool valid, char* entry, const gpu::Vector& low,
                         const gpu::Vector& high) const {
    constexpr ashlar_dtype kIn = std::is_same_v<In, BF16> ? ASHLAR_BF16 : ASHLAR_F16;
    const bool is_q = head < q_heads, is_v = head >= q_heads + kv_heads;
    float x[8], y[8];
    LoadFloats(kIn, &low, 0, x);
    LoadFloats(kIn, &high, 0, y);
    const void* norm = is_q ? a.q_norm.data : is_v ? nullptr : a.k_norm.data;
    if (a.q_norm.data != nullptr || a.k_norm.data != nullptr) {
      Norm(static_cast<const float*>(norm), x, y);
    }
    if (!is_v && a.inv_freq != nullptr) Rotate(x, y);
    if (!valid) return;
    if (is_q) {
      char* to = static_cast<char*>(a.q_out.data) + token * a.q_out.stride[0];
      StoreEight(a.q_out.dtype, to, head * kHeadDim + 8 * place, x);
      StoreEight(a.q_out.dtype, to, head * kHeadDim + kHalf + 8 * place, y);
    } else {
      const int kv_head = is_v ? head - q_heads - kv_heads : head - q_heads;
      char* to = entry + kv_head * a.kv.head_stride;
      const int first = is_v ? kHeadDim : 0;  // V stands behind K
      StoreEight(a.kv.dtype, to, first + 8 * place, x);
      StoreEight(a.kv.dtype, to, first + kHalf + 8 * place, y);
    }
  }

  GPU_DEVICE void Run(int64_t token, int part, int block_shift) {
    const int64_t slot = a.slots[token];
    const bool cached = slot >= 0 && slot < a.kv.blocks * a.kv.block_tokens;
    const int heads = cached ? q_heads + 2 * kv_heads : q_heads;
    const int first = part * kEach * kHeads + which;
    if (first - which >= heads) return gpu::WaitForPrevious();
    char* entry = static_cast<char*>(a.kv.base);
    if (cached) {
      const int64_t block = block_shift >= 0 ? slot >> block_shift : slot / a.kv.block_tokens;
      entry += block * a.kv.block_stride + (slot - block * a.kv.block_tokens) * a.kv.token_stride;
    }
    // Ahead of the wait where that is long, behind the loads where there are many.
    const bool turns = a.inv_freq != nullptr;
    if (kEach == 1 && turns) FindAngles(a.positions[token]);
    gpu::WaitForPrevious();
    const char* row = static_cast<const char*>(a.qkv.data) + token * a.qkv.stride[0];
    gpu::Vector low[kEach], high[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int head = first + i * kHeads;
      const char* from = row + (head < heads ? head : 0) * kHeadDim * 2 + 16 * place;
      low[i] = *reinterpret_cast<const gpu::Vector*>(from);
      high[i] = *reinterpret_cast<const gpu::Vector*>(from + kHalf * 2);
    }
    if (kEach > 1 && turns) FindAngles(a.positions[token]);
#pragma unroll 1
    for (int i = 0; i < kEach; ++i) {
      const int head = first + i * kHeads;
      Finish(token, head, head < heads, entry, low[0], high[0]);
#pragma unroll
      for (int j = 0; j + 1 < kEach; ++j) low[j] = low[j + 1], high[j] = high[j + 1];
    }
  }
};

template <class In, int kHeadDim, int kWave, int kEach>
GPU_KERNEL void GPU_BOUNDS(kEightsThreads, 3) EightsKernel(const EightsParams p) {
  gpu::ReleaseNext();
  if constexpr (gpu::RunsWave<kWave>()) {
    const int wave = gpu::BlockX() * (kEightsThreads / kWave) + gpu::ThreadX() / kWave;
    const int token = wave / p.parts;
    if (token >= p.args.qkv.shape[0]) return gpu::WaitForPrevious();
    EightsWave<In, kHeadDim, kWave, kEach>(p.args).Run(token, wave % p.parts, p.block_shift);
  }
}

// Whether EightsKernel can carry it out. One way for any number of tokens: a token's result is then
// the same beside others.
inline bool TakesEights(const ashlar_qkv_prepare& a) {
  const auto narrow = [](ashlar_dtype dtype) {
    return dtype == ASHLAR_BF16 || dtype == ASHLAR_F16;
  };
  const ashlar_kv_view& kv = a.kv;
  const auto places = [](const void* data) {
    return static_cast<int64_t>(reinterpret_cast<uintptr_t>(data));
  };
  const int64_t all = places(a.qkv.data) | a.qkv.stride[0] | places(a.q_out.data) |
                      a.q_out.stride[0] | places(kv.base) | kv.block_stride | kv.head_stride |
                      kv.token_stride | places(a.q_norm.data) | places(a.k_norm.data);
  const bool sizes = kv.head_dim == 64 || kv.head_dim == 128 || kv.head_dim == 256;
  return sizes && all % 16 == 0 && narrow(a.qkv.dtype) && narrow(a.q_out.dtype) &&
         (narrow(kv.dtype) || kv.dtype == ASHLAR_F8_E4M3) &&
         (a.inv_freq == nullptr || a.rotary_dim == kv.head_dim);
}

template <class In, int kHeadDim, int kWave>
gpu::Error LaunchEights(const gpu::Facts& facts, gpu::Stream stream, const ashlar_qkv_prepare& a) {
  constexpr int kHeads = EightsWave<In, kHeadDim, kWave, 1>::kHeads;
  constexpr int kMany = 3;          // times kHeads heads of a wave, where tokens fill the device
  constexpr int kWavesWanted = 16;  // on a multiprocessor
  const int64_t tokens = a.qkv.shape[0], heads = a.q_out.shape[1] + 2 * int64_t{a.kv.kv_heads};
  const int64_t groups = (heads + kHeads - 1) / kHeads, few = (groups + kMany - 1) / kMany;
  const bool many = tokens * few >= int64_t{kWavesWanted} * facts.multiprocessors;
  EightsParams p{a, static_cast<int>(many ? few : groups), -1};
  for (int shift = 0; shift < 31; ++shift) {
    if (a.kv.block_tokens == 1 << shift) p.block_shift = shift;
  }
  constexpr int kWaves = kEightsThreads / kWave;
  const gpu::Grid grid{static_cast<unsigned>((tokens * p.parts + kWaves - 1) / kWaves)};
  const auto kernel =
      many ? EightsKernel<In, kHeadDim, kWave, kMany> : EightsKernel<In, kHeadDim, kWave, 1>;
  if (!many) {  // attention, which shares memory, is to begin beside it
    const gpu::Error error = gpu::PreferShared(reinterpret_cast<const void*>(kernel));
    if (error != gpu::kSuccess) return error;
  }
  return gpu::Launch(stream, grid, kEightsThreads, 0, kernel, p);
}

template <class In, int kWave>
gpu::Error LaunchEights(const gpu::Facts& facts, gpu::Stream stream, const ashlar_qkv_prepare& a) {
  switch (a.kv.head_dim) {
    case 64:
      return LaunchEights<In, 64, kWave>(facts, stream, a);
    case 128:
      return LaunchEights<In, 128, kWave>(facts, stream, a);
    default:
      return LaunchEights<In, 256, kWave>(facts, stream, a);
  }
}

}  // namespace ashlar::gpu_kernels
