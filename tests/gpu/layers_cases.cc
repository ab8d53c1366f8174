// Whole layers of a step, against the reference's ops one after another over float32. What a plugin
// declines must be as it was.
#include <algorithm>
#include <deque>
#include <numeric>

#include "gpu/layers_problem.h"
#include "gpu/stored.h"

namespace ashlar::gpu_test {
namespace {

// Shares of the largest value, and a value's distance, that rounding may move what a layer leaves.
// Attention whose newest value is a step of 8 bits off is as far off.
constexpr double kHiddenStep = 0x1p-6, kHiddenStepF8 = 0x1p-4, kCacheStep = 0x1p-4;

struct Results {
  std::vector<float> hidden;  // of the sequences that are not idle
  std::vector<std::vector<uint8_t>> arenas;
};

// A problem on a side, which may run once.
class Run {
 public:
  Run(const Side& side, const LayersProblem& p)
      : side_(side),
        p_(p),
        dtype_(side.is_reference() ? ASHLAR_F32 : ASHLAR_BF16),
        tokens_(side.is_reference() ? p.active : p.tokens()),
        hidden_(side, dtype_, p.x),
        qkv_(side, dtype_, Empty(p.q_heads + 2 * p.cache.view.kv_heads)),
        q_(side, dtype_, Empty(p.q_heads)),
        attention_(side, dtype_, Empty(p.q_heads)),
        mlp_(side, dtype_, std::vector<float>(size_t(p.tokens() * p.wide), NAN)),
        freq_(side, p.inv_freq),
        context_(side, p.context),
        positions_(side, Positions(p)),
        starts_(side, Starts(p)) {
    for (const LayerGroup& group : p.groups) {
      tables_.emplace_back(side, group.table);
      slots_.emplace_back(side, group.slots);
    }
    for (const LayerValues& layer : p.layers) Add(layer);
    if (p.misfit == kScale) layers_.back().attention.scale *= 1.5f;
  }
  Run(const Run&) = delete;
  ~Run() {
    for (ashlar_weight* weight : weights_) side_.table().weight_destroy(side_.device(), weight);
  }

  // Op after op, in the reference's parts.
  Results Ops() {
    for (const ashlar_layer& l : layers_) {
      Project(l.qkv);
      side_.Must(side_.table().qkv_prepare(side_.device(), side_.stream(), &l.prepare));
      side_.Must(side_.table().attention(side_.device(), side_.stream(), l.row, &l.attention));
      for (const ashlar_projection* a : {&l.output, &l.gate_up, &l.down}) Project(*a);
    }
    return Read();
  }
  // All of them, or false and nothing.
  bool Together() {
    if (p_.first_call > 0 && !Call(0, p_.first_call)) return false;
    return Call(p_.first_call, layers_.size() - p_.first_call);
  }
  Results Read() const {
    Results results{hidden_.Read(), {}};
    results.hidden.resize(static_cast<size_t>(p_.active * p_.hidden));
    for (const Array<uint8_t>& arena : arenas_) results.arenas.push_back(arena.Read());
    return results;
  }
  int64_t Launches() const {
    return side_.table().row_launches(side_.device(), layers_.front().row);
  }

 private:
  std::vector<float> Empty(int heads) const {
    return std::vector<float>(size_t(p_.tokens() * heads * p_.cache.view.head_dim), NAN);
  }
  static std::vector<int32_t> Positions(const LayersProblem& p) {
    std::vector<int32_t> positions;
    for (int32_t context : p.context) positions.push_back(std::max(0, context - 1));
    return positions;
  }
  static std::vector<int32_t> Starts(const LayersProblem& p) {
    std::vector<int32_t> starts(p.context.size() + 1);
    std::iota(starts.begin(), starts.end(), 0);
    return starts;
  }
  ashlar_tensor Vector(const std::vector<float>& values) {
    if (values.empty()) return {};
    return Dense(vectors_.emplace_back(side_, values).data(), ASHLAR_F32,
                 {static_cast<int64_t>(values.size())});
  }
  ashlar_projection Projection(const LayerMatrix& matrix, const Stored& x, const Stored& out,
                               int64_t out_cols) {
    std::vector<const void*> sources;
    for (const auto& part : matrix.parts) sources.push_back(part.data());
    side_.Must(side_.table().weight_create(side_.device(), &matrix.desc, sources.data(),
                                           &weights_.emplace_back()));
    ashlar_projection a{};
    a.x = Dense(x.data(), dtype_, {tokens_, matrix.desc.cols});
    a.weight = weights_.back();
    a.out = Dense(out.data(), dtype_, {tokens_, out_cols});
    a.eps = 1e-5f;
    return a;
  }

  void Add(const LayerValues& values) {
    const ashlar_kv_view& view = p_.cache.view;
    const int64_t dim = view.head_dim, heads = p_.q_heads + 2 * view.kv_heads;
    const LayerGroup& group = p_.groups[static_cast<size_t>(values.group)];
    ashlar_layer l{};
    l.qkv = Projection(values.weight[kQkv], hidden_, qkv_, heads * dim);
    l.qkv.norm = Vector(values.norm[0]), l.qkv.bias = Vector(values.bias[0]);
    l.output = Projection(values.weight[kOutput], attention_, hidden_, p_.hidden);
    l.output.bias = Vector(values.bias[1]);
    l.gate_up = Projection(values.weight[kGateUp], hidden_, mlp_, p_.wide);
    l.gate_up.norm = Vector(values.norm[1]);
    l.gate_up.gated = 1, l.gate_up.activation = p_.activation;
    l.down = Projection(values.weight[kDown], mlp_, hidden_, p_.hidden);
    l.output.residual = l.down.residual = l.output.out;
    l.row = RowNamed(side_, "_PAGED");

    l.prepare.qkv = l.qkv.out;
    l.prepare.q_out = Dense(q_.data(), dtype_, {tokens_, p_.q_heads, dim});
    l.prepare.q_norm = Vector(values.q_norm), l.prepare.k_norm = Vector(values.k_norm);
    l.prepare.eps = 1e-6f;
    l.prepare.positions = positions_.data();
    l.prepare.inv_freq = freq_.data();
    l.prepare.rotary_dim = static_cast<int32_t>(dim);
    l.prepare.rope_scale = 1.1f;
    l.prepare.rope_style = p_.style;
    l.prepare.kv = view;
    l.prepare.kv.base = arenas_.emplace_back(side_, values.arena).data() + p_.cache.layer_offset;
    l.prepare.slots = slots_[static_cast<size_t>(values.group)].data();

    l.attention.q = l.prepare.q_out;
    l.attention.out = Dense(attention_.data(), dtype_, {tokens_, p_.q_heads, dim});
    l.attention.kv = l.prepare.kv;
    l.attention.block_table = tables_[static_cast<size_t>(values.group)].data();
    l.attention.table_stride = group.stride;
    l.attention.query_start = starts_.data();
    l.attention.context = context_.data();
    l.attention.sequences = static_cast<int32_t>(tokens_);
    l.attention.max_query = 1;
    l.attention.max_context = *std::max_element(p_.context.begin(), p_.context.end());
    l.attention.scale = 1 / std::sqrt(static_cast<float>(dim));
    l.attention.window = values.window;
    layers_.push_back(l);
  }

  void Project(const ashlar_projection& a) {
    const ashlar_plugin& t = side_.table();
    const int64_t cols = a.x.shape[1], rows = a.out.shape[1] * (a.gated != 0 ? 2 : 1);
    const Array<float> normed(side_, std::vector<float>(size_t(tokens_ * cols)));
    const Array<float> product(side_, std::vector<float>(size_t(tokens_ * rows)));
    ashlar_tensor x = a.x;
    if (a.norm.data != nullptr) {
      x = Dense(normed.data(), ASHLAR_F32, {tokens_, cols});
      side_.Must(t.rms_norm(side_.device(), side_.stream(), x, a.x, a.norm, a.eps));
    }
    const bool apart = a.gated != 0 || a.residual.data != nullptr;
    const ashlar_tensor out = apart ? Dense(product.data(), ASHLAR_F32, {tokens_, rows}) : a.out;
    side_.Must(t.matmul(side_.device(), side_.stream(), out, x, a.weight, a.bias));
    if (a.gated != 0) {
      side_.Must(t.gated_activation(side_.device(), side_.stream(), a.out, out, a.activation));
    }
    if (a.residual.data != nullptr) {
      side_.Must(t.add(side_.device(), side_.stream(), a.out, out));
    }
  }

  bool Call(size_t first, size_t count) {
    int32_t taken = -1;
    side_.Must(side_.table().layers(side_.device(), side_.stream(), layers_.data() + first,
                                    static_cast<int32_t>(count), &taken));
    return taken == 1;
  }

  const Side& side_;
  const LayersProblem& p_;
  const ashlar_dtype dtype_;
  const int64_t tokens_;
  const Stored hidden_, qkv_, q_, attention_, mlp_;
  const Array<float> freq_;
  const Array<int32_t> context_, positions_, starts_;
  std::deque<Array<int32_t>> tables_;
  std::deque<Array<int64_t>> slots_;
  std::deque<Array<float>> vectors_;
  std::deque<Array<uint8_t>> arenas_;
  std::vector<ashlar_weight*> weights_;
  std::vector<ashlar_layer> layers_;
};

// Ops round what they leave to bfloat16, so that hidden moves with each of them, and what a layer
// adds to it moves with hidden. Of 8 bits a key or value that lies near a boundary is one step off.
void Compare(const Context& c, const LayersProblem& p, const Results& got, const Results& want) {
  const ashlar_dtype dtype = p.cache.view.dtype;
  double largest = 1;
  for (float value : want.hidden) largest = std::max(largest, std::fabs(double{value}));
  const double near = largest * (dtype == ASHLAR_F8_E4M3 ? kHiddenStepF8 : kHiddenStep) *
                      static_cast<double>(p.layers.size());
  c.report.Compare(c.op, p.text, got.hidden, want.hidden,
                   std::vector<double>(want.hidden.size(), near));
  std::vector<float> read[2];
  std::vector<double> tolerance;
  const int64_t bytes = gpu_kernels::ElementBytes(dtype);
  for (size_t layer = 0; layer < want.arenas.size(); ++layer) {
    const std::vector<uint8_t>&is = got.arenas[layer], &was = want.arenas[layer];
    for (int64_t i = 0; i < static_cast<int64_t>(was.size()) / bytes; ++i) {
      if (std::memcmp(&was[size_t(i * bytes)], &is[size_t(i * bytes)], size_t(bytes)) == 0)
        continue;
      read[0].push_back(gpu_kernels::LoadAs(dtype, is.data(), i));
      read[1].push_back(gpu_kernels::LoadAs(dtype, was.data(), i));
      tolerance.push_back(StepOf(dtype) * std::max(std::fabs(double{read[1].back()}), 0x1p-6) +
                          kCacheStep * static_cast<double>(layer + 1));
    }
  }
  c.report.Compare("layers cache", p.text, read[0], read[1], tolerance);
}

// The reference has no idle sequences; nothing is left of those, and the cache is as it was.
Results Wanted(const Side& reference, const LayersProblem& p) {
  if (p.active > 0) return Run(reference, p).Ops();
  Results results;
  for (const LayerValues& layer : p.layers) results.arenas.push_back(layer.arena);
  return results;
}

bool RunLayers(const Context& c) {
  const LayersProblem p = MakeLayersProblem(c);
  Run run(c.plugin, p);
  const Results before = run.Read();
  const int64_t launches = run.Launches();
  if (run.Together()) {
    c.report.Expect(p.misfit == kNone, "layers misfit", p.text);
    c.report.Expect(run.Launches() - launches == int64_t(p.layers.size()), "layers rows", p.text);
    Compare(c, p, run.Read(), Wanted(c.reference, p));
    return true;
  }
  std::printf("declined %s\n", p.text.c_str());
  const Results after = run.Read();
  c.report.Expect(
      after.hidden == before.hidden && after.arenas == before.arenas && run.Launches() == launches,
      "layers declined", p.text);
  return false;
}

}  // namespace

// Until one is taken, so that a short run has one where the plugin takes any.
void LayersCase(const Context& c) {
  if (c.plugin.table().layers == nullptr) return;
  for (int tries = 0; tries < 16 && !RunLayers(c); ++tries) {
  }
}

}  // namespace ashlar::gpu_test
