// Times the ops of one GPU plugin over the C table, each as a captured graph of repeats over
// rotating operands, beside the copy and matrix rates of the same run.
//   bench PLUGIN.so [--only floor|decode|prefill|prepare|step|matmul|sample] [--row NAME]
//                   [--context TOKENS] [--sequences N]
// Attention is timed by the first row, or by the one named. A step has 1,152 tokens of context and
// 1, 8, 64 and 256 sequences, or those given: then without prompts.
#include "gpu/bench.h"

#include <memory>

#include "gpu/ceilings.h"

namespace {

using namespace ashlar::gpu_test;

int attention_row = 0;
int64_t step_context = 1152, step_sequences = 0;

struct WeightOf {
  const Side& side;
  ashlar_weight* weight = nullptr;
  int64_t rows, cols;
  WeightOf(const Side& on, int64_t rows_, int64_t cols_, bool fp8 = false)
      : side(on), rows(rows_), cols(cols_) {
    static const std::vector<uint16_t> values = Normals(1 << 20);
    static std::vector<uint16_t> bytes;  // as many as the largest weight has
    while (bytes.size() < static_cast<size_t>(rows * cols)) {
      bytes.insert(bytes.end(), values.begin(), values.end());
    }
    ashlar_weight_desc desc{};
    desc.parts = 1, desc.dtype[0] = ASHLAR_BF16, desc.rows[0] = rows, desc.cols = cols;
    desc.fp8 = fp8 ? 1 : 0;
    const void* source = bytes.data();
    side.Must(side.table().weight_create(side.device(), &desc, &source, &weight));
  }
  WeightOf(const WeightOf&) = delete;
  ~WeightOf() { side.table().weight_destroy(side.device(), weight); }
};

// What the device reaches in this run: bytes and operations a microsecond.
struct Rates {
  double bytes = 0, flops = 0;
};

Rates MeasureRates(const Side& side) {
  Rates rates;
  constexpr int64_t kBytes = int64_t{2} << 30;
  {
    const Memory memory(side, 2 * kBytes);
    constexpr int32_t kPairs = 64;
    std::vector<int64_t> pairs;
    for (int64_t i = 0; i < kPairs; ++i) {
      pairs.insert(pairs.end(), {i * kBytes / kPairs, kBytes + i * kBytes / kPairs});
    }
    const Array<int64_t> offsets(side, pairs);
    const Time time = Measure(side, 4, [&](int) {
      side.Must(side.table().copy_blocks(side.device(), side.stream(), memory.as<void>(),
                                         offsets.data(), kPairs, kBytes / kPairs));
    });
    Print("floor: copy_blocks of 2 GiB, bytes both ways", time, 2.0 * kBytes, 0);
    rates.bytes = 2.0 * kBytes / time.median;
  }
  constexpr int64_t kSize = 8192;
  constexpr double kFlops = 2.0 * kSize * kSize * kSize;
  const WeightOf weight(side, kSize, kSize);
  const Memory x(side, kSize * kSize * 2), out(side, kSize * kSize * 2);
  x.Fill(Normals(1 << 20), kSize * kSize * 2);
  const Time product = Measure(side, 4, [&](int) {
    side.Must(side.table().matmul(
        side.device(), side.stream(), Dense(out.as<void>(), ASHLAR_BF16, {kSize, kSize}),
        Dense(x.as<void>(), ASHLAR_BF16, {kSize, kSize}), weight.weight, {}));
  });
  Print("floor: matmul 8192^3 bf16", product, 0, kFlops);
  rates.flops = kFlops / product.median;
  return rates;
}

// Rates of kernels that do nothing else, which every other is compared with.
void MeasureReading(const Side& side) {
  constexpr int64_t kBytes = int64_t{2} << 30;
  const Memory memory(side, 2 * kBytes);
  memory.Fill(Normals(1 << 20), 2 * kBytes);
  const auto must = [](bool launched) {
    if (!launched) std::fprintf(stderr, "bench: a launch failed\n"), std::exit(1);
  };
  char* data = memory.as<char>();
  const Time read = Measure(side, 4, [&](int i) {
    must(LaunchRead(side.stream(), data + i % 2 * kBytes, kBytes, data));
  });
  Print("ceiling: read 2 GiB", read, double(kBytes), 0);
  read_ceiling = double(kBytes) / read.median / 1e3;
  const Time copy =
      Measure(side, 4, [&](int) { must(LaunchCopy(side.stream(), data + kBytes, data, kBytes)); });
  Print("ceiling: copy 2 GiB, bytes both ways", copy, 2.0 * kBytes, 0);
}

void Floor(const Side& side) { MeasureRates(side); }

// One batch of attention: `sequences` with `queries` new tokens and `context` in all.
struct Batch {
  int64_t sequences, queries, context;
  int heads = 32, kv_heads = 8, head_dim = 128, block = 16;
  ashlar_dtype cache = ASHLAR_BF16;

  int64_t tokens() const { return sequences * queries; }
  int64_t blocks() const { return sequences * ((context + block - 1) / block); }
  int64_t entry_bytes() const { return 2 * head_dim * (cache == ASHLAR_BF16 ? 2 : 1); }
  int64_t cache_bytes() const { return blocks() * block * kv_heads * entry_bytes(); }
};

struct AttentionSetup {
  const Side& side;
  Batch batch;
  int copies;  // caches that calls take in turn, so that none stays in the L2
  Memory cache, q, out;
  Array<int32_t> table, starts, contexts;

  static std::vector<int32_t> Table(const Batch& b) {
    std::vector<int32_t> blocks(static_cast<size_t>(b.blocks()));
    for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<int32_t>(i);
    std::shuffle(blocks.begin(), blocks.end(), std::mt19937_64(1));
    return blocks;
  }
  static std::vector<int32_t> Steps(int64_t count, int64_t step) {
    std::vector<int32_t> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<int32_t>(i * step));
    return values;
  }
  // The position of each token, and where its key stands.
  static std::vector<int32_t> Positions(const Batch& b) {
    std::vector<int32_t> positions;
    for (int64_t t = 0; t < b.tokens(); ++t) {
      positions.push_back(static_cast<int32_t>(b.context - b.queries + t % b.queries));
    }
    return positions;
  }
  static std::vector<int64_t> Slots(const Batch& b) {
    const std::vector<int32_t> blocks = Table(b), positions = Positions(b);
    std::vector<int64_t> slots;
    for (int64_t t = 0; t < b.tokens(); ++t) {
      const int64_t position = positions[size_t(t)];
      const int64_t at = t / b.queries * (b.blocks() / b.sequences) + position / b.block;
      slots.push_back(int64_t{blocks[size_t(at)]} * b.block + position % b.block);
    }
    return slots;
  }
  AttentionSetup(const Side& on, const Batch& b)
      : side(on),
        batch(b),
        copies(static_cast<int>(std::clamp<int64_t>((int64_t{1} << 30) / b.cache_bytes(), 1, 256))),
        cache(on, copies * b.cache_bytes()),
        q(on, b.tokens() * b.heads * b.head_dim * 2),
        out(on, b.tokens() * b.heads * b.head_dim * 2),
        table(on, Table(b)),
        starts(on, Steps(b.sequences + 1, b.queries)),
        contexts(on, std::vector<int32_t>(size_t(b.sequences), static_cast<int32_t>(b.context))) {
    const std::vector<uint16_t> values = Normals(1 << 22);
    if (b.cache == ASHLAR_BF16) {
      cache.Fill(values, copies * b.cache_bytes());
    } else {
      cache.Fill(Bytes(1 << 22), copies * b.cache_bytes());
    }
    q.Fill(values, b.tokens() * b.heads * b.head_dim * 2);
  }
  ashlar_kv_view View(int copy) const {
    ashlar_kv_view kv{};
    kv.base = cache.as<char>() + copy % copies * batch.cache_bytes();
    kv.token_stride = batch.entry_bytes();
    kv.head_stride = kv.token_stride * batch.block;
    kv.block_stride = kv.head_stride * batch.kv_heads;
    kv.blocks = batch.blocks();
    kv.dtype = batch.cache;
    kv.block_tokens = batch.block;
    kv.kv_heads = batch.kv_heads;
    kv.head_dim = kv.head_dim_v = batch.head_dim;
    return kv;
  }
  ashlar_attention Args(int copy) const {
    ashlar_attention a{};
    a.q = Dense(q.as<void>(), ASHLAR_BF16, {batch.tokens(), batch.heads, batch.head_dim});
    a.out = Dense(out.as<void>(), ASHLAR_BF16, {batch.tokens(), batch.heads, batch.head_dim});
    a.kv = View(copy);
    a.block_table = table.data();
    a.table_stride = batch.blocks() / batch.sequences;
    a.query_start = starts.data();
    a.context = contexts.data();
    a.sequences = static_cast<int32_t>(batch.sequences);
    a.max_query = static_cast<int32_t>(batch.queries);
    a.max_context = static_cast<int32_t>(batch.context);
    a.scale = 0.088f;
    return a;
  }
  void Run(int copy) const {
    const ashlar_attention a = Args(copy);
    side.Must(side.table().attention(side.device(), side.stream(), attention_row, &a));
  }
};

void Decode(const Side& side) {
  const ashlar_row& row = side.table().rows[attention_row];
  for (ashlar_dtype cache : {ASHLAR_BF16, ASHLAR_F8_E4M3}) {
    if ((row.kv_dtypes & ASHLAR_DTYPE_BIT(cache)) == 0) continue;
    for (int64_t sequences : {1, 8, 64, 256}) {
      for (int64_t context : {1024, 4096, 32768}) {
        Batch batch{sequences, 1, context};
        batch.cache = cache;
        const AttentionSetup setup(side, batch);
        const Time time = Measure(side, std::max(4, setup.copies), [&](int i) { setup.Run(i); });
        char what[64];
        std::snprintf(what, sizeof what, "decode %s 32/8 d128 page 16, B %d ctx %d",
                      cache == ASHLAR_BF16 ? "bf16" : "f8", int(sequences), int(context));
        Print(what, time, double(batch.cache_bytes()), 0);
      }
    }
  }
}

void Prefill(const Side& side) {
  Batch narrow{1, 8192, 8192}, wide{1, 8192, 8192};
  narrow.head_dim = 64;
  wide.head_dim = 256, wide.heads = 16;
  for (const Batch& batch : {Batch{1, 512, 512}, Batch{1, 2048, 2048}, Batch{1, 8192, 8192},
                             Batch{1, 32768, 32768}, narrow, wide}) {
    const AttentionSetup setup(side, batch);
    const Time time = Measure(side, 4, [&](int i) { setup.Run(i); });
    char what[64];
    std::snprintf(what, sizeof what, "prefill bf16 %d/8 d%d page 16, %d", batch.heads,
                  batch.head_dim, int(batch.queries));
    const auto length = static_cast<double>(batch.queries);
    Print(what, time, 0, 2.0 * length * length * batch.heads * batch.head_dim);
  }
}

struct Shape {
  int64_t rows, cols;
  bool fp8 = false;
};

void Matmul(const Side& side) {
  for (const Shape& shape : {Shape{6144, 4096},
                             {4096, 4096},
                             {28672, 4096},
                             {4096, 14336},
                             {128256, 4096},
                             {4096, 1024},
                             {1024, 2048},
                             {6144, 1024},
                             {1024, 3072},
                             {151936, 1024},
                             {6144, 4096, true},
                             {4096, 4096, true},
                             {28672, 4096, true},
                             {4096, 14336, true}}) {
    const int64_t bytes = shape.rows * shape.cols * (shape.fp8 ? 1 : 2);
    const int copies = static_cast<int>(std::clamp<int64_t>((int64_t{1} << 29) / bytes, 1, 64));
    std::vector<std::unique_ptr<WeightOf>> weights;
    for (int i = 0; i < copies; ++i) {
      weights.push_back(std::make_unique<WeightOf>(side, shape.rows, shape.cols, shape.fp8));
    }
    for (int64_t m : {1, 2, 4, 8, 16, 32, 64, 128, 256, 2048}) {
      const Memory x(side, m * shape.cols * 2), out(side, m * shape.rows * 2);
      x.Fill(Normals(1 << 12), m * shape.cols * 2);
      const Time time = Measure(side, std::max(4, copies), [&](int i) {
        side.Must(side.table().matmul(side.device(), side.stream(),
                                      Dense(out.as<void>(), ASHLAR_BF16, {m, shape.rows}),
                                      Dense(x.as<void>(), ASHLAR_BF16, {m, shape.cols}),
                                      weights[size_t(i % copies)]->weight, {}));
      });
      char what[64];
      std::snprintf(what, sizeof what, "matmul%s [%d, %d] x m %d", shape.fp8 ? " fp8" : "",
                    int(shape.rows), int(shape.cols), int(m));
      Print(what, time, double(bytes), 2.0 * double(m) * double(shape.rows) * double(shape.cols));
    }
  }
}

// A decoder's step out of the ops alone: what the engine adds is not in it.
struct Model {
  const char* name;
  int layers;
  int64_t hidden, ffn, vocab;
  int heads, kv_heads;
  bool fp8 = false;  // weights of the layers, and the cache

  int64_t q() const { return int64_t{heads} * 128; }
  int64_t kv() const { return int64_t{kv_heads} * 128; }
};

class ModelStep {
 public:
  // One op of a layer, or the head: its bytes and operations are those that no kernel avoids.
  struct Op {
    const char* name;
    double bytes, flops;
    std::function<void(int layer)> run;
  };

  // `sequences` with `queries` new tokens and `context` in all.
  ModelStep(const Side& side, const Model& model, int64_t sequences, int64_t queries,
            int64_t context)
      : side_(side),
        model_(model),
        sequences_(sequences),
        tokens_(sequences * queries),
        attention_(side, MakeBatch(model, sequences, queries, context)),
        head_(side, model.vocab, model.hidden),
        hidden_(side, tokens_ * model.hidden * 2),
        qkv_(side, tokens_ * (model.q() + 2 * model.kv()) * 2),
        mlp_(side, tokens_ * model.ffn * 2),
        logits_(side, sequences * model.vocab * 4),
        norm_(side, std::vector<float>(static_cast<size_t>(model.hidden), 1.0f)),
        positions_(side, AttentionSetup::Positions(attention_.batch)),
        slots_(side, AttentionSetup::Slots(attention_.batch)),
        freq_(side, std::vector<float>(64, 0.01f)) {
    hidden_.Fill(Normals(1 << 12), tokens_ * model.hidden * 2);
    const int64_t layer_bytes =
        (model.fp8 ? 1 : 2) * (model.q() * 2 + 2 * model.kv() + 3 * model.ffn) * model.hidden;
    // As many layers as the L2 does not hold.
    const auto copies = std::clamp<int64_t>((int64_t{1} << 29) / layer_bytes, 2, model.layers);
    for (int64_t i = 0; i < copies; ++i) layers_.push_back(std::make_unique<Layer>(side, model));
    for (int i = 0; i < model.layers; ++i) args_.push_back(Args(i));
    MakeOps();
  }

  void Print(const Rates& rates) {
    const Batch& batch = attention_.batch;
    double floor = 0, alone = 0;
    for (const Op& op : ops_) floor += Repeats(op) * Floor(op, rates);
    std::vector<std::pair<const Op*, Time>> times;
    for (const Op& op : ops_) {
      const auto run = [&](int i) { op.run(i % model_.layers); };
      times.emplace_back(&op, Measure(side_, 32, run));
      alone += Repeats(op) * times.back().second.median;
    }
    const bool together = RunTogether();
    const Time time = Measure(side_, 1, [&](int) { Run(true); });
    const Time by_ops = together ? Measure(side_, 1, [&](int) { Run(false); }) : time;
    const Plain plain = RunPlain();
    std::printf("step %s B %d ctx %d", model_.name, int(sequences_), int(batch.context));
    if (batch.queries > 1) std::printf(" prompt %d", int(batch.queries));
    std::printf(
        ": %.1f us (%.1f-%.1f), floor %.1f us, %.1f %%; layers %s, by ops %.1f us; ops alone "
        "%.1f us; not captured: %.1f us, launched in %.1f\n",
        time.median, time.least, time.most, floor, 100 * floor / time.median,
        together ? "in one launch" : "by ops", by_ops.median, alone, plain.done, plain.launched);
    for (const auto& [op, took] : times) {
      std::printf("  %-24s x %2d %9.2f us (%.2f-%.2f), floor %9.2f us, %5.1f %%\n", op->name,
                  Repeats(*op), took.median, took.least, took.most, Floor(*op, rates),
                  100 * Floor(*op, rates) / took.median);
    }
    std::fflush(stdout);
  }

 private:
  struct Layer {
    WeightOf qkv, o, gate_up, down;
    Layer(const Side& side, const Model& m)
        : qkv(side, m.q() + 2 * m.kv(), m.hidden, m.fp8),
          o(side, m.hidden, m.q(), m.fp8),
          gate_up(side, 2 * m.ffn, m.hidden, m.fp8),
          down(side, m.hidden, m.ffn, m.fp8) {}
  };

  static Batch MakeBatch(const Model& model, int64_t sequences, int64_t queries, int64_t context) {
    Batch batch{sequences, queries, context};
    batch.heads = model.heads, batch.kv_heads = model.kv_heads;
    if (model.fp8) batch.cache = ASHLAR_F8_E4M3;
    return batch;
  }
  int Repeats(const Op& op) const { return &op == &ops_.back() ? 1 : model_.layers; }
  static double Floor(const Op& op, const Rates& rates) {
    return std::max(op.bytes / rates.bytes, op.flops / rates.flops);
  }
  const Layer& At(int layer) const { return *layers_[static_cast<size_t>(layer) % layers_.size()]; }
  ashlar_tensor Matrix(void* data, int64_t cols, ashlar_dtype dtype = ASHLAR_BF16) const {
    return Dense(data, dtype, {tokens_, cols});
  }

  enum Around { kNothing = 0, kNorm = 1, kGated = 2, kResidual = 4 };
  ashlar_projection Projection(const ashlar_tensor& out, const ashlar_tensor& x,
                               const WeightOf& weight, int around) const {
    ashlar_projection a{};
    a.out = out;
    a.x = x;
    a.weight = weight.weight;
    a.eps = 1e-6f;
    if (around & kNorm) a.norm = Dense(norm_.data(), ASHLAR_F32, {model_.hidden});
    if (around & kResidual) a.residual = out;
    a.gated = around & kGated ? 1 : 0;
    return a;
  }
  void Project(const ashlar_projection& a) const {
    side_.Must(side_.table().project(side_.device(), side_.stream(), &a));
  }
  ashlar_qkv_prepare Preparation(int layer) const {
    ashlar_qkv_prepare a{};
    a.qkv = Matrix(qkv_.as<void>(), model_.q() + 2 * model_.kv());
    a.q_out = Dense(attention_.q.as<void>(), ASHLAR_BF16, {tokens_, model_.heads, 128});
    a.eps = 1e-6f;
    a.positions = positions_.data();
    a.inv_freq = freq_.data();
    a.rotary_dim = 128;
    a.rope_scale = 1;
    a.kv = attention_.View(layer);
    a.slots = slots_.data();
    return a;
  }
  ashlar_layer Args(int layer) const {
    const Layer& at = At(layer);
    const ashlar_tensor state = Matrix(hidden_.as<void>(), model_.hidden);
    const ashlar_tensor mlp = Matrix(mlp_.as<void>(), model_.ffn);
    const ashlar_tensor qkv = Matrix(qkv_.as<void>(), model_.q() + 2 * model_.kv());
    const ashlar_tensor attended = Matrix(attention_.out.as<void>(), model_.q());
    return {Projection(qkv, state, at.qkv, kNorm),
            Preparation(layer),
            attention_row,
            attention_.Args(layer),
            Projection(state, attended, at.o, kResidual),
            Projection(mlp, state, at.gate_up, kNorm | kGated),
            Projection(state, mlp, at.down, kResidual)};
  }

  void MakeOps() {
    const int64_t hidden = model_.hidden, q = model_.q(), wide = q + 2 * model_.kv();
    const auto add = [&](const char* name, int64_t rows, int64_t cols,
                         std::function<void(int)> run) {
      const double values = double(rows) * double(cols);
      const bool fp8 = model_.fp8 && rows != model_.vocab;
      ops_.push_back({name, (fp8 ? 1 : 2) * values,
                      (fp8 ? 1 : 2) * values * double(rows == model_.vocab ? sequences_ : tokens_),
                      std::move(run)});
    };
    add("norm, qkv", wide, hidden, [this](int i) { Project(args_[size_t(i)].qkv); });
    ops_.push_back(
        {"qkv_prepare, attention", double(attention_.batch.cache_bytes()), 0, [this](int i) {
           const ashlar_plugin& t = side_.table();
           const ashlar_layer& a = args_[size_t(i)];
           side_.Must(t.qkv_prepare(side_.device(), side_.stream(), &a.prepare));
           side_.Must(t.attention(side_.device(), side_.stream(), a.row, &a.attention));
         }});
    add("o, residual", hidden, q, [this](int i) { Project(args_[size_t(i)].output); });
    add("norm, gate_up, gated", 2 * model_.ffn, hidden,
        [this](int i) { Project(args_[size_t(i)].gate_up); });
    add("down, residual", hidden, model_.ffn, [this](int i) { Project(args_[size_t(i)].down); });
    add("norm, head", model_.vocab, hidden, [this](int) {
      Project(Projection(Dense(logits_.as<void>(), ASHLAR_F32, {sequences_, model_.vocab}),
                         Dense(hidden_.as<void>(), ASHLAR_BF16, {sequences_, model_.hidden}), head_,
                         kNorm));
    });
  }
  // All layers as one op, which the plugin may leave to the ops of each.
  bool RunTogether() const {
    int32_t taken = 0;
    if (side_.table().layers == nullptr || tokens_ != sequences_) return false;
    side_.Must(
        side_.table().layers(side_.device(), side_.stream(), args_.data(), model_.layers, &taken));
    return taken != 0;
  }
  void Run(bool together) const {
    if (!together || !RunTogether()) {
      for (int layer = 0; layer < model_.layers; ++layer) {
        for (size_t i = 0; i + 1 < ops_.size(); ++i) ops_[i].run(layer);
      }
    }
    ops_.back().run(0);
  }
  // Without a graph: microseconds until the host had launched all, and until all was done.
  struct Plain {
    double launched, done;
  };
  Plain RunPlain() const {
    Plain plain{};
    for (int run = 0; run < 3; ++run) {
      side_.Sync();
      const auto begin = Clock::now();
      Run(true);
      const std::chrono::duration<double, std::micro> launched = Clock::now() - begin;
      side_.Sync();
      const std::chrono::duration<double, std::micro> done = Clock::now() - begin;
      plain = {launched.count(), done.count()};
    }
    return plain;
  }

  const Side& side_;
  const Model model_;
  const int64_t sequences_, tokens_;
  const AttentionSetup attention_;
  std::vector<std::unique_ptr<Layer>> layers_;
  const WeightOf head_;
  const Memory hidden_, qkv_, mlp_, logits_;
  const Array<float> norm_;
  const Array<int32_t> positions_;
  const Array<int64_t> slots_;
  const Array<float> freq_;
  std::vector<ashlar_layer> args_;
  std::vector<Op> ops_;
};

void Steps(const Side& side) {
  const Rates rates = MeasureRates(side);
  const Model small{"0.6B bf16", 28, 1024, 3072, 151936, 16, 8};
  const Model small_fp8{"0.6B fp8", 28, 1024, 3072, 151936, 16, 8, true};
  const Model large{"8B bf16", 32, 4096, 14336, 128256, 32, 8};
  const Model large_fp8{"8B fp8", 32, 4096, 14336, 128256, 32, 8, true};
  for (const Model& model : {small, small_fp8, large, large_fp8}) {
    if (step_sequences > 0) {
      ModelStep(side, model, step_sequences, 1, step_context).Print(rates);
      continue;
    }
    for (int64_t sequences : {1, 8, 64, 256}) {
      ModelStep(side, model, sequences, 1, step_context).Print(rates);
    }
    for (int64_t tokens : {128, 1024, 2048}) ModelStep(side, model, 1, tokens, tokens).Print(rates);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string only, row;
  bool good = argc >= 2 && argc % 2 == 0;
  for (int i = 2; good && i < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--only") {
      only = argv[i + 1];
    } else if (option == "--row") {
      row = argv[i + 1];
    } else if (option == "--context") {
      good = (step_context = std::atoll(argv[i + 1])) > 0;
    } else if (option == "--sequences") {
      good = (step_sequences = std::atoll(argv[i + 1])) > 0;
    } else {
      good = false;
    }
  }
  if (!good) {
    std::fprintf(stderr,
                 "usage: %s PLUGIN.so [--only floor|decode|prefill|prepare|matmul|step|sample] "
                 "[--row NAME] [--context TOKENS] [--sequences N]\n",
                 argv[0]);
    return 2;
  }
  const Side side(argv[1], false);
  if (!side.Ready()) return 3;
  while (!row.empty() && row != side.table().rows[attention_row].name) {
    if (++attention_row == side.table().row_count) {
      std::fprintf(stderr, "bench: no row %s\n", row.c_str());
      return 2;
    }
  }
  const struct {
    const char* name;
    void (*run)(const Side&);
  } parts[] = {{"floor", Floor},          {"decode", Decode}, {"prefill", Prefill},
               {"prepare", PrepareBench}, {"step", Steps},    {"matmul", Matmul},
               {"sample", SampleBench}};
  MeasureReading(side);
  for (const auto& part : parts) {
    if (only.empty() || only == part.name) part.run(side);
  }
}
