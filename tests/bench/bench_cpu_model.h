// The ops of a dense decoder's step with random weights, without an engine around them.
#pragma once

#include <cmath>

#include "bench_cpu_parts.h"

namespace ashlar::cpu {

struct Shape {
  const char* name;
  int64_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab;
  bool qk_norm;
};
inline constexpr Shape kShapes[] = {{"qwen3-0.6b", 28, 1024, 16, 8, 128, 3072, 151936, true},
                                    {"smollm2-135m", 30, 576, 9, 3, 64, 1536, 49152, false}};

struct Layer {
  Matrix qkv, output, gate_up, down;
};

// The ops of a dense decoder in the order of a step, for one sequence.
class Model {
 public:
  Model(ashlar_device& device, const Shape& shape, const TypeName& type, int64_t tokens,
        int64_t context)
      : device_(device),
        s_(shape),
        x_(tokens, s_.hidden),
        normed_(tokens, s_.hidden),
        qkv_(tokens, (s_.heads + 2 * s_.kv_heads) * s_.head_dim),
        q_(tokens, s_.heads * s_.head_dim),
        attended_(tokens, s_.heads * s_.head_dim),
        gate_up_(tokens, 2 * s_.ffn),
        activated_(tokens, s_.ffn),
        projected_(tokens, s_.hidden),
        logits_(1, s_.vocab),
        norm_(1, s_.hidden),
        head_norm_(1, s_.head_dim),
        inv_freq_(s_.head_dim / 2) {
    for (int64_t i = 0; i < s_.layers; ++i) {
      layers_.push_back({MakeMatrix(device, type,
                                    {s_.heads * s_.head_dim, s_.kv_heads * s_.head_dim,
                                     s_.kv_heads * s_.head_dim},
                                    s_.hidden),
                         MakeMatrix(device, type, {s_.hidden}, s_.heads * s_.head_dim),
                         MakeMatrix(device, type, {s_.ffn, s_.ffn}, s_.hidden),
                         MakeMatrix(device, type, {s_.hidden}, s_.ffn)});
      bytes_ += layers_[i].qkv.bytes + layers_[i].output.bytes + layers_[i].gate_up.bytes +
                layers_[i].down.bytes;
    }
    head_ = MakeMatrix(device, type, {s_.vocab}, s_.hidden);
    bytes_ += head_.bytes;
    pack_seconds_ = head_.seconds;
    for (const Layer& layer : layers_)
      for (const Matrix* m : {&layer.qkv, &layer.output, &layer.gate_up, &layer.down})
        pack_seconds_ += m->seconds;
    for (int64_t i = 0; i < s_.head_dim / 2; ++i)
      inv_freq_[i] = std::pow(1e6, -2.0 * i / s_.head_dim);
    blocks_ = (std::max(tokens, context) + kBlock) / kBlock + 1;
    kv_ = Pages(s_.layers * blocks_ * s_.kv_heads * kBlock * 2 * s_.head_dim * 2);
    memset(kv_.data(), 0x11, kv_.bytes());  // small normal numbers, not the shared page of zeros
    for (int64_t i = 0; i < blocks_; ++i) table_.push_back(static_cast<int32_t>(i));
  }

  // `tokens` new tokens behind `past` ones; logits of the last.
  void Step(int64_t tokens, int64_t past) {
    positions_.resize(tokens);
    slots_.resize(tokens);
    for (int64_t i = 0; i < tokens; ++i) positions_[i] = slots_[i] = past + i;
    const int32_t ids[] = {1};
    Must(Embed(device_, x_.View(1), *head_.weight, ids, 1.0f));
    Must(RmsNorm(device_, normed_.View(tokens), x_.View(tokens), norm_.Vector(), 1e-6f));
    for (int64_t i = 0; i < s_.layers; ++i) RunLayer(i, tokens, past);
    const int32_t last[] = {static_cast<int32_t>(tokens - 1)};
    Must(Gather(device_, projected_.View(1), normed_.View(tokens), last));
    Must(Matmul(device_, logits_.View(1), projected_.View(1), *head_.weight, {}));
  }

  int64_t bytes() const { return bytes_; }
  double pack_seconds() const { return pack_seconds_; }

 private:
  static constexpr int32_t kBlock = 32;

  void RunLayer(int64_t i, int64_t tokens, int64_t past) {
    const Layer& layer = layers_[i];
    const int64_t head_bytes = kBlock * 2 * s_.head_dim * 2;
    const ashlar_kv_view kv{.base = static_cast<uint16_t*>(kv_.data()) +
                                    i * blocks_ * s_.kv_heads * kBlock * 2 * s_.head_dim,
                            .block_stride = s_.kv_heads * head_bytes,
                            .head_stride = head_bytes,
                            .token_stride = 2 * s_.head_dim * 2,
                            .blocks = blocks_,
                            .dtype = ASHLAR_F16,
                            .block_tokens = kBlock,
                            .kv_heads = static_cast<int32_t>(s_.kv_heads),
                            .head_dim = static_cast<int32_t>(s_.head_dim),
                            .head_dim_v = static_cast<int32_t>(s_.head_dim)};
    Must(Matmul(device_, qkv_.View(tokens), normed_.View(tokens), *layer.qkv.weight, {}));
    ashlar_tensor head_norm = s_.qk_norm ? head_norm_.Vector() : ashlar_tensor{};
    Must(QkvPrepare(device_, {.qkv = qkv_.View(tokens),
                              .q_out = q_.Heads(tokens, s_.heads),
                              .q_norm = head_norm,
                              .k_norm = head_norm,
                              .eps = 1e-6f,
                              .positions = positions_.data(),
                              .inv_freq = inv_freq_.data(),
                              .rotary_dim = static_cast<int32_t>(s_.head_dim),
                              .rope_scale = 1.0f,
                              .rope_style = ASHLAR_ROPE_HALF,
                              .kv = kv,
                              .slots = slots_.data()}));
    const int32_t start[] = {0, static_cast<int32_t>(tokens)};
    const int32_t context[] = {static_cast<int32_t>(past + tokens)};
    Must(Attention(device_, {.q = q_.Heads(tokens, s_.heads),
                             .out = attended_.Heads(tokens, s_.heads),
                             .kv = kv,
                             .block_table = table_.data(),
                             .table_stride = blocks_,
                             .query_start = start,
                             .context = context,
                             .sequences = 1,
                             .max_query = start[1],
                             .max_context = context[0],
                             .scale = 0.088f,
                             .window = 0}));
    Must(
        Matmul(device_, projected_.View(tokens), attended_.View(tokens), *layer.output.weight, {}));
    Must(Add(device_, x_.View(tokens), projected_.View(tokens)));
    Must(RmsNorm(device_, normed_.View(tokens), x_.View(tokens), norm_.Vector(), 1e-6f));
    Must(Matmul(device_, gate_up_.View(tokens), normed_.View(tokens), *layer.gate_up.weight, {}));
    Must(GatedActivation(device_, activated_.View(tokens), gate_up_.View(tokens), ASHLAR_SILU));
    Must(Matmul(device_, projected_.View(tokens), activated_.View(tokens), *layer.down.weight, {}));
    Must(Add(device_, x_.View(tokens), projected_.View(tokens)));
    Must(RmsNorm(device_, normed_.View(tokens), x_.View(tokens), norm_.Vector(), 1e-6f));
  }

  ashlar_device& device_;
  const Shape& s_;
  Floats x_, normed_, qkv_, q_, attended_, gate_up_, activated_, projected_, logits_, norm_,
      head_norm_;
  std::vector<float> inv_freq_;
  std::vector<Layer> layers_;
  Matrix head_;
  Pages kv_;
  std::vector<int32_t> table_, positions_;
  std::vector<int64_t> slots_;
  int64_t blocks_ = 0, bytes_ = 0;
  double pack_seconds_ = 0;
};

}  // namespace ashlar::cpu
