// The forward pass of pre-norm decoders; what a layer has is read from the ModelConfig. Shapes in
// comments are [tokens, columns] unless said otherwise.
#include <algorithm>
#include <utility>

#include "model/forward.h"

namespace ashlar {
namespace {

// Columns of each activation; the widest layer decides.
struct Widths {
  int64_t hidden, qkv = 0, q = 0, attention = 0, gate_up, mlp;

  explicit Widths(const ModelConfig& config)
      : hidden(config.hidden), gate_up(2 * config.intermediate), mlp(config.intermediate) {
    for (const LayerSpec& layer : config.layers) {
      qkv = std::max(qkv, (int64_t{layer.heads} + 2 * int64_t{layer.kv_heads}) * layer.head_dim);
      q = std::max(q, int64_t{layer.heads} * layer.head_dim);
      attention = std::max(attention, int64_t{layer.heads} * layer.head_dim_v);
    }
  }
  int64_t per_token() const { return 3 * hidden + qkv + q + attention + gate_up + mlp; }
};

int64_t Floats(const ModelConfig& config, int max_tokens, int max_logit_rows) {
  return max_tokens * Widths(config).per_token() +
         max_logit_rows * (2 * config.hidden + config.vocab);
}

// Runs a list of ops and stops at the first that fails.
class Chain {
 public:
  Chain& operator<<(Status status) {
    if (status_.ok()) status_ = std::move(status);
    return *this;
  }
  bool ok() const { return status_.ok(); }
  const Problems& problems() const { return status_.problems(); }

 private:
  Status status_ = Done{};
};

class Decoder final : public Forward {
 public:
  Decoder(const ModelConfig& config, const Device& device, Buffer memory, int max_tokens,
          int max_logit_rows)
      : config_(config),
        device_(device),
        memory_(std::move(memory)),
        max_tokens_(max_tokens),
        max_logit_rows_(max_logit_rows) {
    Widths widths(config);
    float* next = static_cast<float*>(memory_.data());
    auto take = [&next](int64_t count) { return std::exchange(next, next + count); };
    hidden_ = take(max_tokens * widths.hidden);
    normed_ = take(max_tokens * widths.hidden);
    branch_ = take(max_tokens * widths.hidden);
    qkv_ = take(max_tokens * widths.qkv);
    q_ = take(max_tokens * widths.q);
    attention_ = take(max_tokens * widths.attention);
    gate_up_ = take(max_tokens * widths.gate_up);
    mlp_ = take(max_tokens * widths.mlp);
    last_hidden_ = take(max_logit_rows * widths.hidden);
    last_branch_ = take(max_logit_rows * widths.hidden);
    logits_ = take(max_logit_rows * config.vocab);
  }

  Result<Tensor> Run(const ModelWeights& weights, const std::vector<LayerKv>& kv,
                     const StepInput& step) override {
    Check(step.tokens > 0 && step.tokens <= max_tokens_, "a step fits the activations");
    Check(step.logit_rows <= std::min(step.tokens, max_logit_rows_),
          "the wanted logits fit their buffer");
    Chain run;
    run << device_.Embed(Rows(hidden_, config_.hidden, step), weights.embedding, step.ids,
                         config_.embedding_scale);
    for (size_t i = 0; i < config_.layers.size() && run.ok(); ++i) {
      const LayerWeights& layer = weights.layers[i];
      // The branch of the layer before is added where the next norm reads the sum.
      if (i == 0) {
        run << device_.RmsNorm(Rows(normed_, config_.hidden, step),
                               Rows(hidden_, config_.hidden, step), layer.attention_norm,
                               config_.norm_eps);
      } else {
        AddAndNorm(run, layer.attention_norm, step);
      }
      AttentionHalf(run, weights, i, kv[i], step);
      AddAndNorm(run, layer.mlp_norm, step);
      MlpHalf(run, layer, step);
    }
    Tensor logits = Tensor::Of(logits_, DType::kF32, {step.logit_rows, config_.vocab});
    if (step.logit_rows > 0) Head(run, weights, step, logits);
    if (!run.ok()) return run.problems();
    return logits;
  }

 private:
  static Tensor Rows(float* data, int64_t columns, const StepInput& step) {
    return Tensor::Of(data, DType::kF32, {step.tokens, columns});
  }

  // hidden += branch; normed = norm(hidden)
  void AddAndNorm(Chain& run, const Tensor& norm, const StepInput& step) {
    run << device_.AddRmsNorm(Rows(normed_, config_.hidden, step),
                              Rows(hidden_, config_.hidden, step),
                              Rows(branch_, config_.hidden, step), norm, config_.norm_eps);
  }

  // branch = output projection of attention over normed
  void AttentionHalf(Chain& run, const ModelWeights& weights, size_t index, const LayerKv& kv,
                     const StepInput& step) {
    const LayerSpec& spec = config_.layers[index];
    const LayerWeights& layer = weights.layers[index];
    const GroupStep& group = step.groups[static_cast<size_t>(kv.group)];
    const Rope& rope = config_.ropes[static_cast<size_t>(spec.rope)];
    Tensor qkv = Rows(qkv_, int64_t{spec.heads + 2 * spec.kv_heads} * spec.head_dim, step);
    Tensor q = Tensor::Of(q_, DType::kF32, {step.tokens, spec.heads, spec.head_dim});
    Tensor out = Tensor::Of(attention_, DType::kF32, {step.tokens, spec.heads, spec.head_dim_v});

    ashlar_qkv_prepare prepare{};
    prepare.qkv = ToC(qkv);
    prepare.q_out = ToC(q);
    prepare.q_norm = ToC(layer.q_norm);
    prepare.k_norm = ToC(layer.k_norm);
    prepare.eps = config_.norm_eps;
    prepare.positions = step.positions;
    prepare.inv_freq =
        rope.inv_freq.empty() ? nullptr : weights.inv_freq[static_cast<size_t>(spec.rope)];
    prepare.rotary_dim = static_cast<int32_t>(2 * rope.inv_freq.size());
    prepare.rope_scale = rope.scale;
    prepare.rope_style = rope.interleaved ? ASHLAR_ROPE_INTERLEAVED : ASHLAR_ROPE_HALF;
    prepare.kv = kv.view;
    prepare.slots = group.slots;

    ashlar_attention attention{};
    attention.q = ToC(q);
    attention.out = ToC(out);
    attention.kv = kv.view;
    attention.block_table = group.block_table;
    attention.table_stride = group.table_stride;
    attention.query_start = step.query_start;
    attention.context = step.context;
    attention.sequences = step.sequences;
    attention.max_query = step.max_query;
    attention.max_context = step.max_context;
    attention.scale = spec.scale;
    attention.window = spec.window;

    Tensor branch = Rows(branch_, config_.hidden, step);
    run << device_.Matmul(qkv, Rows(normed_, config_.hidden, step), layer.qkv, layer.qkv_bias)
        << device_.QkvPrepare(prepare) << device_.Attention(kv.row, attention)
        << device_.Matmul(branch, Rows(attention_, int64_t{spec.heads} * spec.head_dim_v, step),
                          layer.output, layer.output_bias);
    if (config_.sandwich_norms)
      run << device_.RmsNorm(branch, branch, layer.post_attention_norm, config_.norm_eps);
  }

  // branch = down(act(gate) * up) over normed
  void MlpHalf(Chain& run, const LayerWeights& layer, const StepInput& step) {
    Tensor gate_up = Rows(gate_up_, 2 * config_.intermediate, step);
    Tensor mlp = Rows(mlp_, config_.intermediate, step);
    Tensor branch = Rows(branch_, config_.hidden, step);
    ashlar_activation activation =
        config_.activation == Activation::kSilu ? ASHLAR_SILU : ASHLAR_GELU_TANH;
    run << device_.Matmul(gate_up, Rows(normed_, config_.hidden, step), layer.gate_up)
        << device_.GatedActivation(mlp, gate_up, activation)
        << device_.Matmul(branch, mlp, layer.down);
    if (config_.sandwich_norms)
      run << device_.RmsNorm(branch, branch, layer.post_mlp_norm, config_.norm_eps);
  }

  // Only the rows whose logits are wanted go through the last norm and the head.
  void Head(Chain& run, const ModelWeights& weights, const StepInput& step, const Tensor& logits) {
    Tensor hidden = Tensor::Of(last_hidden_, DType::kF32, {step.logit_rows, config_.hidden});
    Tensor branch = Tensor::Of(last_branch_, DType::kF32, {step.logit_rows, config_.hidden});
    Tensor normed = Tensor::Of(normed_, DType::kF32, {step.logit_rows, config_.hidden});
    run << device_.Gather(hidden, Rows(hidden_, config_.hidden, step), step.logit_tokens)
        << device_.Gather(branch, Rows(branch_, config_.hidden, step), step.logit_tokens)
        << device_.AddRmsNorm(normed, hidden, branch, weights.final_norm, config_.norm_eps)
        << device_.Matmul(logits, normed, config_.tied_head ? weights.embedding : weights.head);
  }

  const ModelConfig& config_;
  const Device& device_;
  Buffer memory_;
  int max_tokens_, max_logit_rows_;
  float *hidden_, *normed_, *branch_, *qkv_, *q_, *attention_, *gate_up_, *mlp_;
  float *last_hidden_, *last_branch_, *logits_;
};

}  // namespace

int64_t ForwardWorkspaceBytes(const ModelConfig& config, int max_tokens, int max_logit_rows) {
  return Floats(config, max_tokens, max_logit_rows) * static_cast<int64_t>(sizeof(float));
}

Result<std::unique_ptr<Forward>> Forward::Create(const ModelConfig& config, const Device& device,
                                                 int max_tokens, int max_logit_rows) {
  Check(config.has_forward, "only architectures with a forward pass are served");
  Result<Buffer> memory = device.Alloc(ForwardWorkspaceBytes(config, max_tokens, max_logit_rows));
  if (!memory) return memory.problems();
  return std::unique_ptr<Forward>(
      std::make_unique<Decoder>(config, device, std::move(*memory), max_tokens, max_logit_rows));
}

}  // namespace ashlar
