// The forward pass of pre-norm decoders; what a layer has is read from the ModelConfig. Shapes in
// comments are [tokens, columns] unless said otherwise.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/checked.h"
#include "model/forward.h"

namespace ashlar {
namespace {

constexpr int64_t kAlignment = 64;  // bytes, of each activation

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
};

// Hands out memory from `base` on; from null it only counts.
class Region {
 public:
  explicit Region(std::byte* base) : base_(base) {}
  void* Take(int64_t count, DType dtype) {
    void* taken = base_ == nullptr ? nullptr : base_ + used_;
    used_ += RoundUp(count * Info(dtype).bytes, kAlignment);
    most_ = std::max(most_, used_);
    return taken;
  }
  // What was taken since `used` were is taken again.
  void Return(int64_t used) { used_ = used; }
  int64_t used() const { return used_; }
  int64_t most() const { return most_; }

 private:
  std::byte* base_;
  int64_t used_ = 0, most_ = 0;
};

// Where each activation stands. What lies between the parts of a projection, `normed` and
// `gate_up`, is the plugin's own when it carries them out as one op. The attention half of a layer,
// the other half and the head leave nothing to each other but `hidden`: they share memory.
struct Activations {
  void *hidden, *normed, *branch, *qkv, *q, *attention, *gate_up, *mlp, *last_hidden, *logits;

  Activations(Region& region, const ModelConfig& config, DType dtype, int64_t tokens,
              int64_t logit_rows, bool parts) {
    Widths widths(config);
    hidden = region.Take(tokens * widths.hidden, dtype);
    normed = region.Take(parts ? tokens * widths.hidden : 0, dtype);
    branch = region.Take(parts || config.sandwich_norms ? tokens * widths.hidden : 0, dtype);
    gate_up = region.Take(parts ? tokens * widths.gate_up : 0, dtype);
    last_hidden = region.Take(logit_rows * widths.hidden, dtype);
    const int64_t kept = region.used();
    qkv = region.Take(tokens * widths.qkv, dtype);
    q = region.Take(tokens * widths.q, dtype);
    attention = region.Take(tokens * widths.attention, dtype);
    region.Return(kept);
    mlp = region.Take(tokens * widths.mlp, dtype);
    region.Return(kept);
    logits = region.Take(logit_rows * config.vocab, DType::kF32);
  }
};

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
        dtype_(device.plugin().activations()),
        memory_(std::move(memory)),
        max_tokens_(max_tokens),
        max_logit_rows_(max_logit_rows),
        at_(Place(memory_, config, device, max_tokens, max_logit_rows)),
        layers_(config.layers.size()) {}

  static int64_t Bytes(const ModelConfig& config, const Device& device, int tokens,
                       int logit_rows) {
    Region region(nullptr);
    Activations counted(region, config, device.plugin().activations(), tokens, logit_rows,
                        !device.has_project());
    return region.most();
  }

  Result<Tensor> Run(const ModelWeights& weights, const std::vector<LayerKv>& kv,
                     const StepInput& step) override {
    Check(step.tokens > 0 && step.tokens <= max_tokens_, "a step fits the activations");
    Check(step.logit_rows <= std::min(step.tokens, max_logit_rows_),
          "the wanted logits fit their buffer");
    Chain run;
    run << device_.Embed(Hidden(step), weights.embedding, step.ids, config_.embedding_scale);
    if (run.ok() && !RunTogether(run, weights, kv, step)) {
      for (size_t i = 0; i < config_.layers.size() && run.ok(); ++i) {
        RunLayer(run, Ops(weights, i, kv[i], step), weights.layers[i]);
      }
    }
    if (step.logit_rows > 0) Head(run, weights, step);
    if (!run.ok()) return run.problems();
    return Logits(step);
  }

  Tensor Logits(const StepInput& step) const override {
    return Tensor::Of(at_.logits, DType::kF32, {step.logit_rows, config_.vocab});
  }

 private:
  static Activations Place(const Buffer& memory, const ModelConfig& config, const Device& device,
                           int tokens, int logit_rows) {
    Region region(static_cast<std::byte*>(memory.data()));
    return Activations(region, config, device.plugin().activations(), tokens, logit_rows,
                       !device.has_project());
  }

  Tensor Rows(void* data, int64_t rows, int64_t columns) const {
    return Tensor::Of(data, dtype_, {rows, columns});
  }
  Tensor Hidden(const StepInput& step) const {
    return Rows(at_.hidden, step.tokens, config_.hidden);
  }

  // As one op, or op by op where the plugin has none.
  void Project(Chain& run, const Projection& p) {
    if (device_.has_project()) {
      run << device_.Project(p);
      return;
    }
    const int64_t rows = p.x.shape[0];
    Tensor x = p.x;
    if (p.norm.data != nullptr) {
      x = Rows(at_.normed, rows, x.shape[1]);
      run << device_.RmsNorm(x, p.x, p.norm, p.eps);
    }
    if (p.gated) {
      Tensor gate_up = Rows(at_.gate_up, rows, p.weight->rows());
      run << device_.Matmul(gate_up, x, *p.weight)
          << device_.GatedActivation(p.out, gate_up, p.activation);
    } else if (p.residual.data != nullptr) {
      Check(p.residual.data == p.out.data, "a residual is added in place");
      Tensor branch = Rows(at_.branch, rows, p.weight->rows());
      run << device_.Matmul(branch, x, *p.weight, p.bias) << device_.Add(p.out, branch);
    } else {
      run << device_.Matmul(p.out, x, *p.weight, p.bias);
    }
  }

  // What a half of a layer adds to hidden: there, or apart where it has a norm of its own.
  Projection Branch(const Tensor& x, const Weight& weight, const Tensor& bias,
                    const StepInput& step) const {
    if (config_.sandwich_norms) {
      Tensor branch = Rows(at_.branch, step.tokens, config_.hidden);
      return {.out = branch, .x = x, .weight = &weight, .bias = bias};
    }
    Tensor hidden = Hidden(step);
    return {.out = hidden, .x = x, .weight = &weight, .bias = bias, .residual = hidden};
  }

  LayerOps Ops(const ModelWeights& weights, size_t index, const LayerKv& kv,
               const StepInput& step) const {
    const LayerSpec& spec = config_.layers[index];
    const LayerWeights& layer = weights.layers[index];
    const GroupStep& group = step.groups[static_cast<size_t>(kv.group)];
    const Rope& rope = config_.ropes[static_cast<size_t>(spec.rope)];
    const int64_t attention_width = int64_t{spec.heads} * spec.head_dim_v;
    Tensor qkv =
        Rows(at_.qkv, step.tokens, int64_t{spec.heads + 2 * spec.kv_heads} * spec.head_dim);
    Tensor q = Tensor::Of(at_.q, dtype_, {step.tokens, spec.heads, spec.head_dim});
    Tensor out = Tensor::Of(at_.attention, dtype_, {step.tokens, spec.heads, spec.head_dim_v});
    Tensor mlp = Rows(at_.mlp, step.tokens, config_.intermediate);

    LayerOps ops;
    ops.qkv = {.out = qkv,
               .x = Hidden(step),
               .weight = &layer.qkv,
               .bias = layer.qkv_bias,
               .norm = layer.attention_norm,
               .eps = config_.norm_eps};

    ashlar_qkv_prepare& prepare = ops.prepare;
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

    ops.row = kv.row;
    ashlar_attention& attention = ops.attention;
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

    ops.output = Branch(Rows(at_.attention, step.tokens, attention_width), layer.output,
                        layer.output_bias, step);
    ops.gate_up = {
        .out = mlp,
        .x = Hidden(step),
        .weight = &layer.gate_up,
        .norm = layer.mlp_norm,
        .eps = config_.norm_eps,
        .gated = true,
        .activation = config_.activation == Activation::kSilu ? ASHLAR_SILU : ASHLAR_GELU_TANH};
    ops.down = Branch(mlp, layer.down, {}, step);
    return ops;
  }

  // All layers as one op; false where the plugin leaves them to their ops.
  bool RunTogether(Chain& run, const ModelWeights& weights, const std::vector<LayerKv>& kv,
                   const StepInput& step) {
    if (!device_.has_layers() || config_.sandwich_norms || step.max_query != 1) return false;
    for (size_t i = 0; i < layers_.size(); ++i) {
      layers_[i] = device_.LayerToC(Ops(weights, i, kv[i], step));
    }
    const Result<bool> taken = device_.Layers(layers_);
    if (taken.ok()) return *taken;
    run << taken.problems();
    return true;
  }

  void RunLayer(Chain& run, const LayerOps& ops, const LayerWeights& layer) {
    Project(run, ops.qkv);
    run << device_.QkvPrepare(ops.prepare) << device_.Attention(ops.row, ops.attention);
    AddBranch(run, ops.output, layer.post_attention_norm);
    Project(run, ops.gate_up);
    AddBranch(run, ops.down, layer.post_mlp_norm);
  }
  void AddBranch(Chain& run, const Projection& branch, const Tensor& norm) {
    Project(run, branch);
    if (!config_.sandwich_norms) return;
    run << device_.RmsNorm(branch.out, branch.out, norm, config_.norm_eps)
        << device_.Add(Rows(at_.hidden, branch.out.shape[0], config_.hidden), branch.out);
  }

  // Only the rows whose logits are wanted go through the last norm and the head.
  void Head(Chain& run, const ModelWeights& weights, const StepInput& step) {
    Tensor hidden = Hidden(step);
    if (step.logit_rows < step.tokens) {
      hidden = Rows(at_.last_hidden, step.logit_rows, config_.hidden);
      run << device_.Gather(hidden, Hidden(step), step.logit_tokens);
    }
    Project(run, {.out = Logits(step),
                  .x = hidden,
                  .weight = config_.tied_head ? &weights.embedding : &weights.head,
                  .norm = weights.final_norm,
                  .eps = config_.norm_eps});
  }

  const ModelConfig& config_;
  const Device& device_;
  DType dtype_;
  Buffer memory_;
  int max_tokens_, max_logit_rows_;
  Activations at_;
  std::vector<ashlar_layer> layers_;  // of the step under way
};

}  // namespace

int64_t ForwardWorkspaceBytes(const ModelConfig& config, DType activations, int max_tokens,
                              int max_logit_rows) {
  Region region(nullptr);
  Activations counted(region, config, activations, max_tokens, max_logit_rows, true);
  return region.most();
}

Result<std::unique_ptr<Forward>> Forward::Create(const ModelConfig& config, const Device& device,
                                                 int max_tokens, int max_logit_rows) {
  Check(!config.plan_only(), "only models with a forward pass are served");
  Result<Buffer> memory = device.Alloc(Decoder::Bytes(config, device, max_tokens, max_logit_rows));
  if (!memory) return memory.problems();
  return std::unique_ptr<Forward>(
      std::make_unique<Decoder>(config, device, std::move(*memory), max_tokens, max_logit_rows));
}

}  // namespace ashlar
