// From the fused projection to attention's inputs, in one pass: norm of q and k heads, rotary
// embedding, q to q_out, k and v to the cache. What stands here takes any head size, type and
// alignment, prepare_eights.h the usual ones: a wave takes some heads of one token. Bound by bytes.
#include <algorithm>
#include <cmath>

#include "common/shapes.h"
#include "device.h"
#include "number.h"
#include "op_checks.h"
#include "ops.h"
#include "prepare_eights.h"
#include "qkv_prepare.h"
#include "wave.h"

namespace ashlar::gpu_kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kLargestHead = 256;
constexpr int64_t kBlocksWanted = 4;  // on each multiprocessor

// Four values of a head that a lane turns: two pairs, of neighbouring angles.
struct Couple {
  float x[2], y[2];
};

// Where the values of couple j lie, x and then y as two neighbours each, and how they pair.
struct CouplePlace {
  int x, y;
  bool rotated, halves;  // halves: (x[i], y[i]) are a pair; else (x[0], x[1]) and (y[0], y[1])
};
GPU_DEVICE CouplePlace PlaceOf(const ashlar_qkv_prepare& a, int j) {
  const int half = a.inv_freq == nullptr ? 0 : a.rotary_dim / 2;
  if (2 * j >= half) return {4 * j, 4 * j + 2, false, false};
  const bool halves = a.rope_style == ASHLAR_ROPE_HALF;
  return {halves ? 2 * j : 4 * j, halves ? 2 * j + half : 4 * j + 2, true, halves};
}

template <class In>
GPU_DEVICE void LoadTwo(const In* from, float* to) {
  if constexpr (sizeof(In) == 2) {
    const uint32_t word = *reinterpret_cast<const uint32_t*>(from);
    to[0] = Load(In{static_cast<uint16_t>(word)});
    to[1] = Load(In{static_cast<uint16_t>(word >> 16)});
  } else {
    to[0] = from[0];
    to[1] = from[1];
  }
}

// What one wave does: couples lane, lane + kWave.. of each of its heads.
template <class In, int kWave>
struct Preparation {
  static constexpr int kCouples = kLargestHead / 4 / kWave;

  const ashlar_qkv_prepare& a;
  const bool aligned;  // entries of the cache to two elements
  const int lane = gpu::ThreadX() % kWave;
  const int dim = a.kv.head_dim, kv_heads = a.kv.kv_heads;
  const int q_heads = static_cast<int>(a.q_out.shape[1]);
  const int64_t token = gpu::BlockX();
  float cosine[kCouples][2], sine[kCouples][2];

  GPU_DEVICE Preparation(const ashlar_qkv_prepare& args, bool entries_aligned)
      : a(args), aligned(entries_aligned) {}

  GPU_DEVICE bool Has(int c) const { return 4 * (lane + c * kWave) < dim; }
  GPU_DEVICE CouplePlace Place(int c) const { return PlaceOf(a, lane + c * kWave); }

  GPU_DEVICE void FindAngles() {
    const auto position = static_cast<float>(a.positions[token]);
#pragma unroll
    for (int c = 0; c < kCouples; ++c) {
      if (!Has(c) || !Place(c).rotated) continue;
      for (int i = 0; i < 2; ++i) {
        const float angle = position * a.inv_freq[2 * (lane + c * kWave) + i];
        sincosf(angle, &sine[c][i], &cosine[c][i]);
        sine[c][i] *= a.rope_scale;
        cosine[c][i] *= a.rope_scale;
      }
    }
  }

  GPU_DEVICE void LoadHead(int head, Couple* couples) const {
    const char* row = static_cast<const char*>(a.qkv.data) + token * a.qkv.stride[0];
    const In* from = reinterpret_cast<const In*>(row) + int64_t{head} * dim;
#pragma unroll
    for (int c = 0; c < kCouples; ++c) {
      if (!Has(c)) continue;
      LoadTwo(from + Place(c).x, couples[c].x);
      LoadTwo(from + Place(c).y, couples[c].y);
    }
  }

  GPU_DEVICE void Norm(const float* weight, Couple* couples) const {
    float squares = 0;
#pragma unroll
    for (int c = 0; c < kCouples; ++c) {
      if (!Has(c)) continue;
      for (int i = 0; i < 2; ++i) {
        squares += couples[c].x[i] * couples[c].x[i] + couples[c].y[i] * couples[c].y[i];
      }
    }
    const float scale = 1.0f / sqrtf(WaveSum<kWave>(squares) / static_cast<float>(dim) + a.eps);
#pragma unroll
    for (int c = 0; c < kCouples; ++c) {
      if (!Has(c)) continue;
      for (int i = 0; i < 2; ++i) {
        couples[c].x[i] = couples[c].x[i] * scale * weight[Place(c).x + i];
        couples[c].y[i] = couples[c].y[i] * scale * weight[Place(c).y + i];
      }
    }
  }

  GPU_DEVICE void Rotate(Couple* couples) const {
#pragma unroll
    for (int c = 0; c < kCouples; ++c) {
      if (!Has(c) || !Place(c).rotated) continue;
      Couple& v = couples[c];
      if (Place(c).halves) {
        Turn(v.x[0], v.y[0], cosine[c][0], sine[c][0]);
        Turn(v.x[1], v.y[1], cosine[c][1], sine[c][1]);
      } else {
        Turn(v.x[0], v.x[1], cosine[c][0], sine[c][0]);
        Turn(v.y[0], v.y[1], cosine[c][1], sine[c][1]);
      }
    }
  }
  GPU_DEVICE static void Turn(float& x, float& y, float cosine, float sine) {
    const float before = x;
    x = before * cosine - y * sine;
    y = y * cosine + before * sine;
  }

  GPU_DEVICE void StoreHead(ashlar_dtype dtype, void* to, int64_t first, bool pairs,
                            const Couple* couples) const {
#pragma unroll
    for (int c = 0; c < kCouples; ++c) {
      if (!Has(c)) continue;
      StorePair(dtype, to, first + Place(c).x, couples[c].x[0], couples[c].x[1], pairs);
      StorePair(dtype, to, first + Place(c).y, couples[c].y[0], couples[c].y[1], pairs);
    }
  }

  GPU_DEVICE void Finish(int head, char* entry, Couple* couples) const {
    const bool is_q = head < q_heads, is_v = head >= q_heads + kv_heads;
    const ashlar_tensor& norm = is_q ? a.q_norm : a.k_norm;
    if (!is_v && norm.data != nullptr) Norm(static_cast<const float*>(norm.data), couples);
    if (!is_v) Rotate(couples);
    if (is_q) {
      StoreHead(a.q_out.dtype, static_cast<char*>(a.q_out.data) + token * a.q_out.stride[0],
                int64_t{head} * dim, true, couples);
    } else {
      const int kv_head = is_v ? head - q_heads - kv_heads : head - q_heads;
      StoreHead(a.kv.dtype, entry + kv_head * a.kv.head_stride, is_v ? dim : 0, aligned, couples);
    }
  }

  GPU_DEVICE void Run() {
    const int64_t slot = a.slots[token];
    const bool cached = slot >= 0 && slot < a.kv.blocks * a.kv.block_tokens;
    char* entry = static_cast<char*>(a.kv.base);
    if (cached) {
      entry += slot / a.kv.block_tokens * a.kv.block_stride +
               slot % a.kv.block_tokens * a.kv.token_stride;
    }
    const int step = kThreads / kWave * gpu::GridY();
    const int heads = cached ? q_heads + 2 * kv_heads : q_heads;
    int head = gpu::BlockY() * (kThreads / kWave) + gpu::ThreadX() / kWave;
    if (head >= heads) return gpu::WaitForPrevious();
    FindAngles();
    gpu::WaitForPrevious();
    Couple next[kCouples];
    LoadHead(head, next);
    for (; head < heads; head += step) {
      Couple now[kCouples];
#pragma unroll
      for (int c = 0; c < kCouples; ++c) now[c] = next[c];
      if (head + step < heads) LoadHead(head + step, next);  // on its way while this one is used
      Finish(head, entry, now);
    }
  }
};

template <class In, int kWave>
GPU_KERNEL void GPU_BOUNDS(kThreads) QkvPrepareKernel(const ashlar_qkv_prepare a, bool aligned) {
  if constexpr (gpu::RunsWave<kWave>()) {
    gpu::ReleaseNext();
    Preparation<In, kWave>(a, aligned).Run();
  }
}

bool InPairs(const ashlar_tensor& t) {
  return (reinterpret_cast<uintptr_t>(t.data) | static_cast<uintptr_t>(t.stride[0])) %
             static_cast<uintptr_t>(2 * ElementBytes(t.dtype)) ==
         0;
}

// Blocks of one token: few where tokens fill the device, so that a wave finds its angles once for
// many heads.
unsigned BlocksOfToken(const ashlar_qkv_prepare& a, const gpu::Facts& facts) {
  const int64_t waves = kThreads / facts.wave;
  const int64_t heads = a.q_out.shape[1] + 2 * int64_t{a.kv.kv_heads};
  const int64_t wanted = kBlocksWanted * facts.multiprocessors / a.qkv.shape[0];
  return static_cast<unsigned>(std::clamp<int64_t>(wanted, 1, (heads + waves - 1) / waves));
}

template <class In>
gpu::Error LaunchFrom(const gpu::Facts& facts, gpu::Stream stream, const ashlar_qkv_prepare& a) {
  if constexpr (!std::is_same_v<In, float>) {
    if (TakesEights(a)) {
      return gpu::WithWave(facts.wave, [&](auto wave) {
        constexpr int kWave = wave;
        return LaunchEights<In, kWave>(facts, stream, a);
      });
    }
  }
  const ashlar_kv_view& kv = a.kv;
  const auto place = static_cast<int64_t>(reinterpret_cast<uintptr_t>(kv.base)) | kv.block_stride |
                     kv.head_stride | kv.token_stride;
  const bool aligned = place % (2 * ElementBytes(kv.dtype)) == 0;
  return gpu::WithWave(facts.wave, [&](auto wave) {
    constexpr int kWave = wave;
    const gpu::Grid grid{static_cast<unsigned>(a.qkv.shape[0]), BlocksOfToken(a, facts)};
    return gpu::Launch(stream, grid, kThreads, 0, QkvPrepareKernel<In, kWave>, a, aligned);
  });
}

}  // namespace

gpu::Error LaunchPrepare(const gpu::Facts& facts, gpu::Stream stream,
                         const ashlar_qkv_prepare& args) {
  if (args.qkv.dtype == ASHLAR_F32) return LaunchFrom<float>(facts, stream, args);
  if (args.qkv.dtype == ASHLAR_BF16) return LaunchFrom<BF16>(facts, stream, args);
  return LaunchFrom<F16>(facts, stream, args);
}

std::string CheckPrepare(const ashlar_qkv_prepare& a) {
  std::string problem = CheckKv(a.kv, kKvDtypes);
  if (problem.empty() && a.kv.head_dim_v != a.kv.head_dim) {
    problem = "K and V heads differ in size";
  }
  if (problem.empty()) problem = CheckHeads("q_out", a.q_out, -1, -1, a.kv.head_dim, kFloats);
  if (problem.empty()) {
    const int64_t heads = a.q_out.shape[1] + 2 * int64_t{a.kv.kv_heads};
    problem = CheckMatrix("qkv", a.qkv, a.q_out.shape[0], heads * a.kv.head_dim, kFloats);
  }
  if (problem.empty() && a.q_norm.data != nullptr) {
    problem = CheckVector("q_norm", a.q_norm, a.kv.head_dim);
  }
  if (problem.empty() && a.k_norm.data != nullptr) {
    problem = CheckVector("k_norm", a.k_norm, a.kv.head_dim);
  }
  if (problem.empty() && (a.kv.head_dim % 4 != 0 || a.kv.head_dim > kLargestHead)) {
    problem = "head size " + std::to_string(a.kv.head_dim);
  }
  if (problem.empty() && a.inv_freq != nullptr &&
      (a.rotary_dim < 0 || a.rotary_dim % 4 != 0 || a.rotary_dim > a.kv.head_dim)) {
    problem = "rotary_dim " + std::to_string(a.rotary_dim);
  }
  if (problem.empty() && a.rope_style != ASHLAR_ROPE_HALF &&
      a.rope_style != ASHLAR_ROPE_INTERLEAVED) {
    problem = "unknown rope style";
  }
  if (problem.empty() && !(InPairs(a.qkv) && InPairs(a.q_out))) {
    problem = "rows are not aligned to two elements";
  }
  return problem.empty() ? problem : "qkv_prepare: " + problem;
}

int QkvPrepare(ashlar_device* device, ashlar_stream* stream, const ashlar_qkv_prepare* args) {
  const std::string problem = CheckPrepare(*args);
  if (!problem.empty()) return Failed(problem);
  if (args->qkv.shape[0] == 0) return ASHLAR_OK;
  if (Checked(gpu::UseDevice(device->index), "qkv_prepare") != ASHLAR_OK) return ASHLAR_FAILED;
  const gpu::Stream on = StreamOf(device, stream);
  if (device->step != nullptr && args->qkv.shape[0] == 1 && TakesEights(*args) &&
      device->step->Takes(*args)) {
    device->held = HeldPrepare{stream, *args};
    return ASHLAR_OK;
  }
  return Checked(LaunchPrepare(device->facts, on, *args), "qkv_prepare");
}

}  // namespace ashlar::gpu_kernels
