// Times the ops of one GPU plugin over the C table, each as a captured graph of repeats over
// rotating operands, beside the copy and matrix rates of the same run.
//   bench PLUGIN.so [--only floor|decode|prefill|step|matmul|sample] [--row NAME]
// Attention is timed by the first row, or by the one named.
#include "gpu/bench.h"

#include <memory>

namespace {

using namespace ashlar::gpu_test;

int attention_row = 0;

struct WeightOf {
  const Side& side;
  ashlar_weight* weight = nullptr;
  int64_t rows, cols;
  WeightOf(const Side& on, int64_t rows_, int64_t cols_) : side(on), rows(rows_), cols(cols_) {
    static const std::vector<uint16_t> values = Normals(1 << 20);
    std::vector<uint16_t> bytes(static_cast<size_t>(rows * cols));
    for (size_t i = 0; i < bytes.size(); i += values.size()) {
      std::copy_n(values.begin(), std::min(values.size(), bytes.size() - i), bytes.begin() + i);
    }
    ashlar_weight_desc desc{};
    desc.parts = 1, desc.dtype[0] = ASHLAR_BF16, desc.rows[0] = rows, desc.cols = cols;
    const void* source = bytes.data();
    side.Must(side.table().weight_create(side.device(), &desc, &source, &weight));
  }
  WeightOf(const WeightOf&) = delete;
  ~WeightOf() { side.table().weight_destroy(side.device(), weight); }
};

void Floor(const Side& side) {
  constexpr int64_t kBytes = int64_t{2} << 30;
  const Memory memory(side, 2 * kBytes);
  const std::vector<int64_t> pairs = {0, kBytes};
  const Array<int64_t> offsets(side, pairs);
  const Time time = Measure(side, 4, [&](int) {
    side.Must(side.table().copy_blocks(side.device(), side.stream(), memory.as<void>(),
                                       offsets.data(), 1, kBytes));
  });
  Print("floor: copy_blocks of 2 GiB, bytes both ways", time, 2.0 * kBytes, 0);
  constexpr int64_t kSize = 8192;
  const WeightOf weight(side, kSize, kSize);
  const Memory x(side, kSize * kSize * 2), out(side, kSize * kSize * 2);
  x.Fill(Normals(1 << 20), kSize * kSize * 2);
  const Time product = Measure(side, 4, [&](int) {
    side.Must(side.table().matmul(
        side.device(), side.stream(), Dense(out.as<void>(), ASHLAR_BF16, {kSize, kSize}),
        Dense(x.as<void>(), ASHLAR_BF16, {kSize, kSize}), weight.weight, {}));
  });
  Print("floor: matmul 8192^3 bf16", product, 0, 2.0 * kSize * kSize * kSize);
}

// One batch of attention: `sequences` with `queries` new tokens and `context` in all.
struct Batch {
  int64_t sequences, queries, context;
  int heads = 32, kv_heads = 8, head_dim = 128, block = 16;

  int64_t tokens() const { return sequences * queries; }
  int64_t blocks() const { return sequences * ((context + block - 1) / block); }
  int64_t entry_bytes() const { return 2 * head_dim * 2; }
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
  AttentionSetup(const Side& on, const Batch& b)
      : side(on),
        batch(b),
        copies(static_cast<int>(std::clamp<int64_t>((int64_t{1} << 30) / b.cache_bytes(), 1, 64))),
        cache(on, copies * b.cache_bytes()),
        q(on, b.tokens() * b.heads * b.head_dim * 2),
        out(on, b.tokens() * b.heads * b.head_dim * 2),
        table(on, Table(b)),
        starts(on, Steps(b.sequences + 1, b.queries)),
        contexts(on, std::vector<int32_t>(size_t(b.sequences), static_cast<int32_t>(b.context))) {
    const std::vector<uint16_t> values = Normals(1 << 22);
    cache.Fill(values, copies * b.cache_bytes());
    q.Fill(values, b.tokens() * b.heads * b.head_dim * 2);
  }
  ashlar_kv_view View(int copy) const {
    ashlar_kv_view kv{};
    kv.base = cache.as<char>() + copy % copies * batch.cache_bytes();
    kv.token_stride = batch.entry_bytes();
    kv.head_stride = kv.token_stride * batch.block;
    kv.block_stride = kv.head_stride * batch.kv_heads;
    kv.blocks = batch.blocks();
    kv.dtype = ASHLAR_BF16;
    kv.block_tokens = batch.block;
    kv.kv_heads = batch.kv_heads;
    kv.head_dim = kv.head_dim_v = batch.head_dim;
    return kv;
  }
  void Run(int copy) const {
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
    side.Must(side.table().attention(side.device(), side.stream(), attention_row, &a));
  }
};

void Decode(const Side& side) {
  for (int64_t sequences : {1, 8, 64, 256}) {
    for (int64_t context : {1024, 4096, 32768}) {
      const Batch batch{sequences, 1, context};
      if (batch.cache_bytes() > int64_t{64} << 30) continue;
      const AttentionSetup setup(side, batch);
      const Time time = Measure(side, std::max(4, setup.copies), [&](int i) { setup.Run(i); });
      char what[64];
      std::snprintf(what, sizeof what, "decode bf16 32/8 d128 page 16, B %d ctx %d", int(sequences),
                    int(context));
      Print(what, time, double(batch.cache_bytes()), 0);
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
                             {151936, 1024}}) {
    const int64_t bytes = shape.rows * shape.cols * 2;
    const int copies = static_cast<int>(std::clamp<int64_t>((int64_t{1} << 29) / bytes, 1, 64));
    std::vector<std::unique_ptr<WeightOf>> weights;
    for (int i = 0; i < copies; ++i) {
      weights.push_back(std::make_unique<WeightOf>(side, shape.rows, shape.cols));
    }
    for (int64_t m : {1, 2, 4, 8, 16, 32, 64, 256, 2048}) {
      const Memory x(side, m * shape.cols * 2), out(side, m * shape.rows * 2);
      const Time time = Measure(side, std::max(4, copies), [&](int i) {
        side.Must(side.table().matmul(side.device(), side.stream(),
                                      Dense(out.as<void>(), ASHLAR_BF16, {m, shape.rows}),
                                      Dense(x.as<void>(), ASHLAR_BF16, {m, shape.cols}),
                                      weights[size_t(i % copies)]->weight, {}));
      });
      char what[64];
      std::snprintf(what, sizeof what, "matmul [%d, %d] x m %d", int(shape.rows), int(shape.cols),
                    int(m));
      Print(what, time, double(bytes), 2.0 * double(m) * double(shape.rows) * double(shape.cols));
    }
  }
}

// A decoder's decode step out of the ops alone: what the engine adds is not in it.
struct Model {
  const char* name;
  int layers;
  int64_t hidden, ffn, vocab;
  int heads, kv_heads;
};

void Step(const Side& side, const Model& model, int64_t sequences, int64_t context,
          ashlar_dtype dtype) {
  Batch batch{sequences, 1, context};
  batch.heads = model.heads, batch.kv_heads = model.kv_heads;
  const AttentionSetup setup(side, batch);
  const int64_t q = int64_t{model.heads} * 128, kv = int64_t{model.kv_heads} * 128;
  // Two layers in turn: more than the L2 holds, as a whole model is.
  std::vector<std::unique_ptr<WeightOf>> w;
  for (int i = 0; i < 2; ++i) {
    w.push_back(std::make_unique<WeightOf>(side, q + 2 * kv, model.hidden));
    w.push_back(std::make_unique<WeightOf>(side, model.hidden, q));
    w.push_back(std::make_unique<WeightOf>(side, 2 * model.ffn, model.hidden));
    w.push_back(std::make_unique<WeightOf>(side, model.hidden, model.ffn));
  }
  const WeightOf head(side, model.vocab, model.hidden);
  const int64_t widest = std::max({q + 2 * kv, 2 * model.ffn, model.vocab});
  const Memory hidden(side, sequences * model.hidden * 4),
      branch(side, sequences * model.hidden * 4);
  const Memory normed(side, sequences * model.hidden * 4), wide(side, sequences * widest * 4);
  const Memory query(side, sequences * q * 4), mixed(side, sequences * q * 4);
  const Memory mlp(side, sequences * model.ffn * 4), norm(side, model.hidden * 4);
  const Array<int32_t> positions(side, std::vector<int32_t>(size_t(sequences), 7));
  const Array<float> freq(side, std::vector<float>(64, 0.01f));
  const Array<int64_t> slots(side, std::vector<int64_t>(size_t(sequences), -1));
  const ashlar_plugin& t = side.table();
  const auto matrix = [&](const Memory& m, int64_t cols, ashlar_dtype type) {
    return Dense(m.as<void>(), type, {sequences, cols});
  };
  const ashlar_tensor weight = Dense(norm.as<void>(), ASHLAR_F32, {model.hidden});
  const ashlar_tensor sum = matrix(hidden, model.hidden, ASHLAR_F32);
  const ashlar_tensor part = matrix(branch, model.hidden, dtype);
  const ashlar_tensor in = matrix(normed, model.hidden, dtype);
  const auto product = [&](const ashlar_tensor& to, const ashlar_tensor& x, const WeightOf& by) {
    side.Must(t.matmul(side.device(), side.stream(), to, x, by.weight, {}));
  };
  const Time time = Measure(side, 1, [&](int) {
    for (int layer = 0; layer < model.layers; ++layer) {
      const auto* l = &w[size_t(layer % 2 * 4)];
      const ashlar_tensor qkv = matrix(wide, q + 2 * kv, dtype);
      side.Must(t.add_rms_norm(side.device(), side.stream(), in, sum, part, weight, 1e-6f));
      product(qkv, in, *l[0]);
      ashlar_qkv_prepare prepare{};
      prepare.qkv = qkv;
      prepare.q_out = Dense(query.as<void>(), dtype, {sequences, model.heads, 128});
      prepare.eps = 1e-6f;
      prepare.positions = positions.data();
      prepare.inv_freq = freq.data();
      prepare.rotary_dim = 128;
      prepare.rope_scale = 1;
      prepare.kv = setup.View(layer);
      prepare.slots = slots.data();
      side.Must(t.qkv_prepare(side.device(), side.stream(), &prepare));
      setup.Run(layer);
      product(part, matrix(mixed, q, dtype), *l[1]);
      side.Must(t.add_rms_norm(side.device(), side.stream(), in, sum, part, weight, 1e-6f));
      product(matrix(wide, 2 * model.ffn, dtype), in, *l[2]);
      side.Must(t.gated_activation(side.device(), side.stream(), matrix(mlp, model.ffn, dtype),
                                   matrix(wide, 2 * model.ffn, dtype), ASHLAR_SILU));
      product(part, matrix(mlp, model.ffn, dtype), *l[3]);
    }
    product(matrix(wide, model.vocab, ASHLAR_F32), in, head);
  });
  const double layer_bytes =
      2.0 * double((q + 2 * kv) * model.hidden + q * model.hidden + 3 * model.ffn * model.hidden);
  const double bytes = model.layers * (layer_bytes + double(batch.cache_bytes())) +
                       2.0 * double(model.vocab * model.hidden);
  char what[80];
  std::snprintf(what, sizeof what, "step %s %s B %d ctx %d", model.name,
                dtype == ASHLAR_F32 ? "f32 between ops" : "bf16", int(sequences), int(context));
  Print(what, time, bytes, 0);
}

void Steps(const Side& side) {
  const Model small{"0.6B", 28, 1024, 3072, 151936, 16, 8};
  const Model large{"8B", 32, 4096, 14336, 128256, 32, 8};
  for (ashlar_dtype dtype : {ASHLAR_F32, ASHLAR_BF16}) {
    for (const Model& model : {small, large}) {
      for (int64_t sequences : {1, 8, 64, 256}) Step(side, model, sequences, 1152, dtype);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string only, row;
  for (int i = 2; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--only") == 0) only = argv[i + 1];
    if (std::strcmp(argv[i], "--row") == 0) row = argv[i + 1];
  }
  if (argc != 2 + 2 * (!only.empty() + !row.empty())) {
    std::fprintf(stderr,
                 "usage: %s PLUGIN.so [--only floor|decode|prefill|matmul|step|sample] "
                 "[--row NAME]\n",
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
  } parts[] = {{"floor", Floor}, {"decode", Decode}, {"prefill", Prefill},
               {"step", Steps},  {"matmul", Matmul}, {"sample", SampleBench}};
  for (const auto& part : parts) {
    if (only.empty() || only == part.name) part.run(side);
  }
}
