// From the fused projection to attention's inputs, in one pass: norm of q and k heads, rotary
// embedding, q to q_out, k and v to the cache. One block a token, one wave a head. Bound by bytes.
#include <cmath>

#include "device.h"
#include "number.h"
#include "ops.h"
#include "shapes.h"
#include "wave.h"

namespace ashlar::gpu_kernels {
namespace {

constexpr int kThreads = 256;

// One head on its way: element i of it, normed, is In(i).
struct Head {
  const char* row;
  ashlar_dtype dtype;
  int64_t first;
  const float* norm;
  float scale;

  GPU_DEVICE float In(int i) const {
    const float value = LoadAs(dtype, row, first + i);
    return norm == nullptr ? value : value * scale * norm[i];
  }
};

template <int kWave>
GPU_DEVICE float NormScale(const ashlar_qkv_prepare& a, const Head& head, int dim) {
  float squares = 0;
  for (int i = gpu::ThreadX() % kWave; i < dim; i += kWave) {
    const float value = LoadAs(head.dtype, head.row, head.first + i);
    squares += value * value;
  }
  return 1.0f / sqrtf(WaveSum<kWave>(squares) / static_cast<float>(dim) + a.eps);
}

// Writes the head, rotated, to element `first` of `to`.
template <int kWave>
GPU_DEVICE void WriteRotated(const ashlar_qkv_prepare& a, const Head& head, float position, int dim,
                             ashlar_dtype dtype, void* to, int64_t first) {
  const int lane = gpu::ThreadX() % kWave;
  const int half = a.inv_freq == nullptr ? 0 : a.rotary_dim / 2;
  for (int i = lane; i < half; i += kWave) {
    const float angle = position * a.inv_freq[i];
    const float cosine = cosf(angle) * a.rope_scale, sine = sinf(angle) * a.rope_scale;
    const bool halves = a.rope_style == ASHLAR_ROPE_HALF;
    const int at = halves ? i : 2 * i, other = halves ? i + half : 2 * i + 1;
    const float x = head.In(at), y = head.In(other);
    StoreAs(dtype, to, first + at, x * cosine - y * sine);
    StoreAs(dtype, to, first + other, y * cosine + x * sine);
  }
  for (int i = 2 * half + lane; i < dim; i += kWave) StoreAs(dtype, to, first + i, head.In(i));
}

template <int kWave>
GPU_KERNEL void QkvPrepareKernel(const ashlar_qkv_prepare a) {
  if constexpr (gpu::RunsWave<kWave>()) {
    gpu::ReleaseNext();
    gpu::WaitForPrevious();
    const int64_t token = gpu::BlockX();
    const int dim = a.kv.head_dim, kv_heads = a.kv.kv_heads;
    const int q_heads = static_cast<int>(a.q_out.shape[1]);
    const int wave = gpu::ThreadX() / kWave, lane = gpu::ThreadX() % kWave;
    const auto position = static_cast<float>(a.positions[token]);
    const int64_t given = a.slots[token];
    const bool cached = given >= 0 && given < a.kv.blocks * a.kv.block_tokens;
    const int64_t slot = cached ? given : 0;
    char* entry = static_cast<char*>(a.kv.base) + slot / a.kv.block_tokens * a.kv.block_stride +
                  slot % a.kv.block_tokens * a.kv.token_stride;
    const char* row = static_cast<const char*>(a.qkv.data) + token * a.qkv.stride[0];
    for (int h = wave; h < q_heads + 2 * kv_heads; h += kThreads / kWave) {
      Head head{row, a.qkv.dtype, int64_t{h} * dim, nullptr, 1};
      if (h >= q_heads + kv_heads) {
        if (!cached) continue;
        char* to = entry + (h - q_heads - kv_heads) * a.kv.head_stride;
        for (int i = lane; i < dim; i += kWave) StoreAs(a.kv.dtype, to, dim + i, head.In(i));
        continue;
      }
      const bool is_q = h < q_heads;
      if (!is_q && !cached) continue;
      const ashlar_tensor& norm = is_q ? a.q_norm : a.k_norm;
      if (norm.data != nullptr) {
        head.scale = NormScale<kWave>(a, head, dim);
        head.norm = static_cast<const float*>(norm.data);
      }
      if (is_q) {
        WriteRotated<kWave>(a, head, position, dim, a.q_out.dtype,
                            static_cast<char*>(a.q_out.data) + token * a.q_out.stride[0],
                            int64_t{h} * dim);
      } else {
        WriteRotated<kWave>(a, head, position, dim, a.kv.dtype,
                            entry + (h - q_heads) * a.kv.head_stride, 0);
      }
    }
  }
}

std::string CheckArgs(const ashlar_qkv_prepare& a) {
  std::string problem = CheckKv("qkv_prepare", a.kv);
  if (problem.empty()) problem = CheckHeads("q_out", a.q_out, -1, -1, a.kv.head_dim);
  if (problem.empty()) {
    const int64_t heads = a.q_out.shape[1] + 2 * int64_t{a.kv.kv_heads};
    problem = CheckMatrix("qkv", a.qkv, a.q_out.shape[0], heads * a.kv.head_dim);
  }
  if (problem.empty() && a.q_norm.data != nullptr) {
    problem = CheckVector("q_norm", a.q_norm, a.kv.head_dim);
  }
  if (problem.empty() && a.k_norm.data != nullptr) {
    problem = CheckVector("k_norm", a.k_norm, a.kv.head_dim);
  }
  if (problem.empty() && a.inv_freq != nullptr &&
      (a.rotary_dim < 0 || a.rotary_dim % 2 != 0 || a.rotary_dim > a.kv.head_dim)) {
    problem = "qkv_prepare: rotary_dim " + std::to_string(a.rotary_dim);
  }
  if (problem.empty() && a.rope_style != ASHLAR_ROPE_HALF &&
      a.rope_style != ASHLAR_ROPE_INTERLEAVED) {
    problem = "qkv_prepare: unknown rope style";
  }
  return problem;
}

}  // namespace

int QkvPrepare(ashlar_device* device, ashlar_stream* stream, const ashlar_qkv_prepare* args) {
  const std::string problem = CheckArgs(*args);
  if (!problem.empty()) return Failed(problem);
  if (args->qkv.shape[0] == 0) return ASHLAR_OK;
  if (Checked(gpu::UseDevice(device->index), "qkv_prepare") != ASHLAR_OK) return ASHLAR_FAILED;
  const gpu::Error error = gpu::WithWave(device->facts.wave, [&](auto wave) {
    constexpr int kWave = wave;
    return gpu::Launch(StreamOf(stream), {static_cast<unsigned>(args->qkv.shape[0])}, kThreads, 0,
                       QkvPrepareKernel<kWave>, *args);
  });
  return Checked(error, "qkv_prepare");
}

}  // namespace ashlar::gpu_kernels
