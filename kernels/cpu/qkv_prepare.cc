// From the fused projection to attention's inputs: head norms, rotary embedding, cache write.
#include <string.h>

#include <cmath>

#include "common/op_args.h"
#include "common/shapes.h"
#include "ops.h"

namespace ashlar::cpu {
namespace {

bool Matches(const RopeTable& table, const ashlar_qkv_prepare& a) {
  const size_t tokens = a.qkv.shape[0], half = a.rotary_dim / 2;
  return table.positions.size() == tokens && table.inv_freq.size() == half &&
         table.scale == a.rope_scale &&
         memcmp(table.positions.data(), a.positions, tokens * sizeof(int32_t)) == 0 &&
         memcmp(table.inv_freq.data(), a.inv_freq, half * sizeof(float)) == 0;
}

// The angle is one float product, as models are trained; its cosine and sine are rounded once.
void Fill(ashlar_device& device, RopeTable& table, const ashlar_qkv_prepare& a) {
  const int64_t tokens = a.qkv.shape[0], half = a.rotary_dim / 2;
  table.positions.assign(a.positions, a.positions + tokens);
  table.inv_freq.assign(a.inv_freq, a.inv_freq + half);
  table.scale = a.rope_scale;
  table.cosine.resize(tokens * half);
  table.sine.resize(tokens * half);
  const double scale = static_cast<double>(a.rope_scale);
  ForRanges(device, tokens, half * 64, [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t)
      for (int64_t i = 0; i < half; ++i) {
        const double angle =
            static_cast<double>(static_cast<float>(a.positions[t]) * a.inv_freq[i]);
        table.cosine[t * half + i] = static_cast<float>(std::cos(angle) * scale);
        table.sine[t * half + i] = static_cast<float>(std::sin(angle) * scale);
      }
  });
}

const RopeTable* Rope(ashlar_device& device, const ashlar_qkv_prepare& a) {
  if (a.inv_freq == nullptr || a.rotary_dim == 0) return nullptr;
  RopeTable* table = nullptr;
  for (RopeTable& t : device.rope)
    if (Matches(t, a)) table = &t;
  if (table == nullptr) {
    table = device.rope[0].used <= device.rope[1].used ? &device.rope[0] : &device.rope[1];
    Fill(device, *table, a);
  }
  table->used = ++device.rope_clock;
  return table;
}

class TokenWriter {
 public:
  TokenWriter(const ashlar_device& device, const ashlar_qkv_prepare& a, const RopeTable* rope)
      : kernels_(device.kernels), a_(a), rope_(rope), dim_(a.kv.head_dim) {}

  void Write(int64_t token, float* head) const {
    const int64_t q_heads = a_.q_out.shape[1], kv_heads = a_.kv.kv_heads;
    const float* from = Row(a_.qkv, token);
    for (int64_t h = 0; h < q_heads; ++h)
      Turn(Row(a_.q_out, token) + h * dim_, from + h * dim_, a_.q_norm, token);
    const int64_t slot = a_.slots[token];
    if (slot < 0) return;
    char* entry = static_cast<char*>(a_.kv.base) + slot / a_.kv.block_tokens * a_.kv.block_stride +
                  slot % a_.kv.block_tokens * a_.kv.token_stride;
    for (int64_t h = 0; h < kv_heads; ++h, entry += a_.kv.head_stride) {
      Turn(head, from + (q_heads + h) * dim_, a_.k_norm, token);
      kernels_.from_floats(entry, a_.kv.dtype, head, dim_);
      kernels_.from_floats(entry + dim_ * FloatBytes(a_.kv.dtype), a_.kv.dtype,
                           from + (q_heads + kv_heads + h) * dim_, dim_);
    }
  }

 private:
  // Norm, then rotation, of one head.
  void Turn(float* to, const float* from, const ashlar_tensor& norm, int64_t token) const {
    if (norm.data != nullptr)
      kernels_.rms_norm_row(to, from, Row(norm, 0), dim_, a_.eps);
    else
      memcpy(to, from, dim_ * sizeof(float));
    if (rope_ == nullptr) return;
    const int64_t half = a_.rotary_dim / 2;
    const auto rotate =
        a_.rope_style == ASHLAR_ROPE_HALF ? kernels_.rope_half : kernels_.rope_interleaved;
    rotate(to, rope_->cosine.data() + token * half, rope_->sine.data() + token * half, half);
  }

  const KernelTable& kernels_;
  const ashlar_qkv_prepare& a_;
  const RopeTable* rope_;
  int64_t dim_;
};

}  // namespace

int QkvPrepare(ashlar_device& device, const ashlar_qkv_prepare& args) {
  if (const std::string wrong = CheckQkvPrepare(args); !wrong.empty()) return Failed(wrong);
  const TokenWriter writer(device, args, Rope(device, args));
  for (Scratch& scratch : device.per_thread)
    if (scratch.Get<float>(args.kv.head_dim) == nullptr) return Failed("qkv_prepare: no memory");
  ForRanges(device, args.qkv.shape[0], args.qkv.shape[1] * 8,
            [&](int64_t begin, int64_t end, int thread) {
              float* head = device.per_thread[thread].Get<float>(args.kv.head_dim);
              for (int64_t t = begin; t < end; ++t) writer.Write(t, head);
            });
  return ASHLAR_OK;
}

}  // namespace ashlar::cpu
