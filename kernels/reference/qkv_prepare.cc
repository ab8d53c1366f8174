// From the fused projection to attention's inputs: norm, rotary embedding, k and v to the cache.
// The rotation's angle is position * inv_freq as one float product, as models are trained; its
// cosine and sine, times rope_scale, are rounded to float. Bound by bytes.
#include <cmath>
#include <vector>

#include "common/op_args.h"
#include "common/shapes.h"
#include "device.h"
#include "kv.h"
#include "norm.h"
#include "ops.h"

namespace ashlar::reference {
namespace {

void Rotate(const ashlar_qkv_prepare& a, int32_t position, float* head) {
  if (a.inv_freq == nullptr) return;
  const int32_t half = a.rotary_dim / 2;
  for (int32_t i = 0; i < half; ++i) {
    const float angle = static_cast<float>(position) * a.inv_freq[i];
    const double scale = static_cast<double>(a.rope_scale);
    const float cosine = static_cast<float>(std::cos(static_cast<double>(angle)) * scale);
    const float sine = static_cast<float>(std::sin(static_cast<double>(angle)) * scale);
    const bool halves = a.rope_style == ASHLAR_ROPE_HALF;
    float& first = head[halves ? i : 2 * i];
    float& second = head[halves ? i + half : 2 * i + 1];
    const float x = first, y = second;
    first = x * cosine - y * sine;
    second = y * cosine + x * sine;
  }
}

void PrepareToken(const ashlar_qkv_prepare& a, int64_t t) {
  const int64_t dim = a.kv.head_dim, q_heads = a.q_out.shape[1], kv_heads = a.kv.kv_heads;
  const float* from = Row(a.qkv, t);
  for (int64_t h = 0; h < q_heads; ++h) {
    const float* head = from + h * dim;
    float* to = Row(a.q_out, t) + h * dim;
    if (a.q_norm.data != nullptr) {
      NormRow(head, Row(a.q_norm, 0), a.eps, dim, to);
    } else {
      std::copy(head, head + dim, to);
    }
    Rotate(a, a.positions[t], to);
  }
  if (a.slots[t] < 0) return;
  std::vector<float> key(static_cast<size_t>(dim));
  for (int64_t h = 0; h < kv_heads; ++h) {
    const float* head = from + (q_heads + h) * dim;
    if (a.k_norm.data != nullptr) {
      NormRow(head, Row(a.k_norm, 0), a.eps, dim, key.data());
    } else {
      std::copy(head, head + dim, key.data());
    }
    Rotate(a, a.positions[t], key.data());
    const float* value = from + (q_heads + kv_heads + h) * dim;
    void* entry = KvEntry(a.kv, a.slots[t] / a.kv.block_tokens, h, a.slots[t] % a.kv.block_tokens);
    for (int64_t i = 0; i < dim; ++i) {
      StoreFloat(a.kv.dtype, entry, i, key[static_cast<size_t>(i)]);
      StoreFloat(a.kv.dtype, entry, dim + i, value[i]);
    }
  }
}

}  // namespace

int QkvPrepare(ashlar_device* device, ashlar_stream*, const ashlar_qkv_prepare* args) {
  const std::string problem = CheckQkvPrepare(*args, kKvDtypes);
  if (!problem.empty()) return Failed(problem);
  device->pool.Split(args->qkv.shape[0], [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) PrepareToken(*args, t);
  });
  return ASHLAR_OK;
}

}  // namespace ashlar::reference
