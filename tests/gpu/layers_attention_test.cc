// Attention among the phases of a kernel of whole layers, on the host executor, against loops over
// a paged cache whose unseen entries are NaNs. The kernel here has attention alone, and a ring of
// copies in groups as products would have.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <random>

#include "cuda/hopper_layers_attention.h"
#include "gpu/paged_cache.h"

namespace ashlar::hopper {
namespace {

using gpu_kernels::BF16;
using gpu_kernels::F8;
using gpu_kernels::LayersParams;
using gpu_test::Random;

constexpr int kClusters = 2, kThreads = 256, kRingStages = 4;
constexpr uint32_t kFirstRound = 0xfffffffeu;

// What stands around the phases under test.
struct Around {
  const LayersParams* params;
  const uint16_t* qkv;  // [layers, tokens, width]: becomes that of the launch
  uint16_t* out;        // [layers, tokens, q width]: as each layer has left it
  uint64_t *qkv_words, *out_words;
  const gpu::Vector* ring;  // [kThreads + 64], what is copied
  int* ring_errors;
};

// Copies of a thread in groups, as many on their way at a time as there are stages.
class Ring {
 public:
  Ring(const Around& around, gpu::Vector* room) : around_(around), own_(room) {}

  void Start() {
    for (int stage = 0; stage < kRingStages; ++stage) Ask();
  }
  void Use(int stages) {
    for (int i = 0; i < stages; ++i) {
      gpu::WaitCopies<kRingStages - 1>();
      const gpu::Vector& want = around_.ring[gpu::ThreadX() + used_ % 64];
      const gpu::Vector& got = own_[used_ % kRingStages];
      if (std::memcmp(&got, &want, sizeof got) != 0) ++*around_.ring_errors;
      ++used_;
      Ask();
    }
  }

 private:
  void Ask() {
    gpu::CopyToShared(own_ + asked_ % kRingStages, around_.ring + gpu::ThreadX() + asked_ % 64,
                      true);
    gpu::CommitCopies();
    ++asked_;
  }

  const Around& around_;
  gpu::Vector* const own_;
  int asked_ = 0, used_ = 0;
};

// One thread of every unit's cluster carries its heads in and out: no other cluster is waited for.
class Heads {
 public:
  explicit Heads(const Around& around) : a_(around), p_(*around.params) {}

  void BringIn(int layer, uint32_t round) const {
    ForUnits([&](int token, int kv_head) {
      const int width = (q_heads_ + 2 * kv_heads_) * dim_;
      const uint16_t* from = a_.qkv + (int64_t{layer} * p_.tokens + token) * width;
      for (int i = 0; i < width; i += 2) {
        const int head = i / dim_;
        const int of =
            head < q_heads_ ? head / (q_heads_ / kv_heads_) : (head - q_heads_) % kv_heads_;
        if (of != kv_head) continue;
        WriteWord(a_.qkv_words + token * width / 2 + WordOf(i),
                  uint32_t{from[i + 1]} << 16 | from[i], round);
      }
    });
  }
  void TakeOut(int layer, uint32_t round) const {
    ForUnits([&](int token, int kv_head) {
      const int group = q_heads_ / kv_heads_, values = group * dim_;
      const int at = (token * q_heads_ + kv_head * group) * dim_;
      const uint64_t* words = a_.out_words + at / 2;
      gpu::AwaitRound(words, values / 2, round);
      uint16_t* to = a_.out + int64_t{layer} * p_.tokens * q_heads_ * dim_ + at;
      for (int i = 0; i < values; ++i) {
        const uint64_t word = words[WordOf(i / 2 * 2)];
        to[i] = static_cast<uint16_t>(i % 2 == 0 ? word : word >> 16);
      }
    });
  }

 private:
  template <class Body>
  void ForUnits(const Body& body) const {
    if (gpu::ThreadX() != 0 || ClusterRank() != 0) return;
    const int ranks = gpu::GridX() / kClusters;
    for (int unit = gpu::BlockX() / ranks; unit < p_.tokens * kv_heads_; unit += kClusters) {
      body(unit / kv_heads_, unit % kv_heads_);
    }
  }

  const Around& a_;
  const LayersParams& p_;
  const int kv_heads_ = p_.prepare.kv.kv_heads, dim_ = p_.prepare.kv.head_dim;
  const int q_heads_ = static_cast<int>(p_.prepare.q_out.shape[1]);
};

template <class Stored, int kHeadDim, int kRanks>
void Kernel(const Around& around) {
  using Attention = LayerAttention<Stored, kHeadDim, kRanks>;
  using Shared = typename Attention::Shared;
  const LayersParams& p = *around.params;
  char* const memory = gpu::SharedMemory();
  auto* const rings = reinterpret_cast<gpu::Vector*>(memory + sizeof(Shared));
  Ring ring(around, rings + gpu::ThreadX() * kRingStages);
  Attention attention(p, around.qkv_words, around.out_words, *reinterpret_cast<Shared*>(memory));
  const Heads heads(around);
  ring.Start();
  attention.Start();
  gpu::WaitForPrevious();
  for (int layer = 0; layer < p.layers; ++layer) {
    const uint32_t round = kFirstRound + static_cast<uint32_t>(layer);
    ring.Use(layer % 3 * 3);
    heads.BringIn(layer, round);
    NoSecond none;
    attention.Run(layer, round, none);
    attention.FetchAhead(layer);
    heads.TakeOut(layer, round);
  }
  ring.Use(kRingStages);
}

template <class Stored, int kHeadDim, int kRanks>
void LaunchRanks(const Around& around) {
  const size_t bytes =
      sizeof(typename LayerStep<Stored, kHeadDim, kRanks>::Shared) + kThreads * kRingStages * 16;
  LaunchClusters(nullptr, kRanks, {kRanks * kClusters}, kThreads, bytes, false,
                 Kernel<Stored, kHeadDim, kRanks>, around);
}
template <class Stored, int kHeadDim>
void Launch(int ranks, const Around& around) {
  ranks == 8 ? LaunchRanks<Stored, kHeadDim, 8>(around) : LaunchRanks<Stored, kHeadDim, 4>(around);
}

// What a layer has of its own.
struct Layer {
  std::vector<uint8_t> arena;
  std::vector<int32_t> table;  // [tokens, stride]
  std::vector<int64_t> slots;
  std::vector<float> q_norm, k_norm, inv_freq;
  std::vector<float> qkv;  // [tokens, width]
  int window = 0;
};

struct Model {
  gpu_test::Cache cache;
  int layers, tokens, kv_heads, group, dim, ranks, table_stride = 1;
  ashlar_rope_style style;
  std::vector<int32_t> context, positions;
  std::vector<Layer> layer;
  std::string text;

  int q_heads() const { return kv_heads * group; }
  int heads() const { return q_heads() + 2 * kv_heads; }
  int Block(const Layer& l, int token, int key) const {
    return l.table[static_cast<size_t>(token * table_stride + key / cache.view.block_tokens)];
  }
  int64_t Entry(const Layer& l, int token, int head, int key) const {
    return gpu_test::EntryAt(cache, Block(l, token, key), head, key % cache.view.block_tokens);
  }
  int Oldest(const Layer& l, int token) const {
    const int context_of = context[static_cast<size_t>(token)];
    return l.window > 0 ? std::max(0, context_of - l.window) : 0;
  }
};

Layer MakeLayer(Random& random, const Model& m) {
  Layer l;
  const ashlar_kv_view& kv = m.cache.view;
  if (random.Chance(0.3)) l.window = static_cast<int>(random.Int(1, 200));
  l.table.resize(static_cast<size_t>(kv.blocks));
  std::iota(l.table.begin(), l.table.end(), 0);
  std::shuffle(l.table.begin(), l.table.end(), random.engine());
  l.arena.assign(static_cast<size_t>(m.cache.bytes), 0xff);
  for (int token = 0; token < m.tokens; ++token) {
    const int newest = m.context[static_cast<size_t>(token)] - 1;
    for (int key = m.Oldest(l, token); key < newest; ++key) {
      for (int head = 0; head < m.kv_heads; ++head) {
        const std::vector<float> values = random.Normals(2 * m.dim);
        uint8_t* entry = l.arena.data() + m.Entry(l, token, head, key);
        for (int i = 0; i < 2 * m.dim; ++i) {
          gpu_kernels::StoreAs(kv.dtype, entry, i, values[static_cast<size_t>(i)]);
        }
      }
    }
    l.slots.push_back(newest < 0 ? -1
                                 : int64_t{m.Block(l, token, newest)} * kv.block_tokens +
                                       newest % kv.block_tokens);
  }
  if (random.Chance(0.6)) l.q_norm = random.Normals(m.dim);
  if (random.Chance(0.6)) l.k_norm = random.Normals(m.dim);
  const double base = random.Chance(0.5) ? 1e4 : 1e6;
  for (int i = 0; i < m.dim / 2 && random.Chance(1); ++i) {
    l.inv_freq.push_back(static_cast<float>(std::pow(base, -2.0 * i / m.dim)));
  }
  if (random.Chance(0.2)) l.inv_freq.clear();
  l.qkv = random.Normals(int64_t{m.tokens} * m.heads() * m.dim);
  for (float& value : l.qkv) value = Load(gpu_kernels::Store<BF16>(value));
  return l;
}

// With contexts of its own where `contexts` has none.
Model MakeModel(Random& random, ashlar_dtype dtype, int dim,
                const std::vector<int>& contexts = {}) {
  Model m;
  m.dim = dim;
  m.layers = static_cast<int>(random.Int(1, 3));
  m.tokens = !contexts.empty()    ? static_cast<int>(contexts.size())
             : random.Chance(0.4) ? 1
                                  : static_cast<int>(random.Int(2, gpu_kernels::kMostLayerTokens));
  m.kv_heads = static_cast<int>(random.Int(1, m.tokens > 2 ? 3 : 5));
  m.group = static_cast<int>(random.Int(1, kMostStepGroup));
  m.ranks = random.Pick({4, 8});
  m.style = random.Chance(0.3) ? ASHLAR_ROPE_INTERLEAVED : ASHLAR_ROPE_HALF;
  const int block_tokens = random.Pick({16, 32, 48, 64});
  // Past the keys that all stages hold, once.
  const int longest = m.tokens * m.kv_heads < 4 && random.Chance(0.4) ? 4500 : 200;
  for (int token = 0; token < m.tokens; ++token) {
    int keys = static_cast<int>(random.Int(1, random.Chance(0.3) ? 40 : longest));
    if (random.Chance(0.15)) keys = 0;
    if (!contexts.empty()) keys = contexts[static_cast<size_t>(token)];
    m.context.push_back(keys);
    m.positions.push_back(std::max(0, m.context.back() - 1));
    m.table_stride = std::max(m.table_stride, (keys + block_tokens - 1) / block_tokens);
    m.text += " " + std::to_string(m.context.back());
  }
  const int blocks = m.tokens * m.table_stride + 2;
  do {
    m.cache = gpu_test::MakeCache(random, dtype, blocks, block_tokens, m.kv_heads, dim);
  } while (m.cache.layer_offset % 16 != 0);
  for (int layer = 0; layer < m.layers; ++layer) m.layer.push_back(MakeLayer(random, m));
  m.text = "layers " + std::to_string(m.layers) + " ranks " + std::to_string(m.ranks) + " head " +
           std::to_string(dim) + " kv_heads " + std::to_string(m.kv_heads) + " group " +
           std::to_string(m.group) + " block " + std::to_string(block_tokens) +
           gpu_test::NameOf(dtype) + " contexts" + m.text;
  return m;
}

struct Answer {
  std::vector<std::vector<double>> out;                // [layers][tokens, q_heads, dim]
  std::vector<std::vector<std::vector<double>>> kept;  // [layers][tokens * kv_heads]: K, V
};

// A head's values after norm and rotary embedding.
std::vector<double> Prepared(const Model& m, const Layer& l, int token, int head) {
  const float* from = l.qkv.data() + (int64_t{token} * m.heads() + head) * m.dim;
  std::vector<double> x(from, from + m.dim);
  if (head >= m.q_heads() + m.kv_heads) return x;
  const std::vector<float>& norm = head < m.q_heads() ? l.q_norm : l.k_norm;
  if (!norm.empty()) {
    double squares = 0;
    for (double value : x) squares += value * value;
    const double scale = 1 / std::sqrt(squares / m.dim + 1e-6);
    for (size_t i = 0; i < x.size(); ++i) x[i] *= scale * double{norm[i]};
  }
  const bool halves = m.style == ASHLAR_ROPE_HALF;
  for (size_t i = 0; i < l.inv_freq.size(); ++i) {
    const double angle =
        double{static_cast<float>(m.positions[static_cast<size_t>(token)]) * l.inv_freq[i]};
    double& a = x[halves ? i : 2 * i];
    double& b = x[halves ? i + x.size() / 2 : 2 * i + 1];
    const double before = a;
    a = 1.1 * (before * std::cos(angle) - b * std::sin(angle));
    b = 1.1 * (b * std::cos(angle) + before * std::sin(angle));
  }
  return x;
}

double Rounded(ashlar_dtype dtype, double value) {
  float stored = 0;  // as wide as any
  gpu_kernels::StoreAs(dtype, &stored, 0, static_cast<float>(value));
  return double{gpu_kernels::LoadAs(dtype, &stored, 0)};
}

// K and then V of a key that the token sees.
std::vector<double> KeyOf(const Model& m, const Layer& l, const std::vector<double>& newest,
                          int token, int kv_head, int key) {
  const ashlar_dtype dtype = m.cache.view.dtype;
  std::vector<double> values;
  const bool is_new = key == m.context[static_cast<size_t>(token)] - 1;
  const uint8_t* entry = l.arena.data() + m.Entry(l, token, kv_head, key);
  for (int i = 0; i < 2 * m.dim; ++i) {
    values.push_back(is_new ? Rounded(dtype, newest[static_cast<size_t>(i)])
                            : double{gpu_kernels::LoadAs(dtype, entry, i)});
  }
  return values;
}

std::vector<double> Attend(const std::vector<std::vector<double>>& keys,
                           const std::vector<double>& q) {
  const size_t dim = q.size();
  std::vector<double> weights, out(dim);
  double top = -INFINITY, total = 0;
  for (const auto& key : keys) {
    double score = 0;
    for (size_t i = 0; i < dim; ++i) score += q[i] * key[i];
    weights.push_back(score / std::sqrt(static_cast<double>(dim)));
    top = std::max(top, weights.back());
  }
  for (size_t k = 0; k < keys.size(); ++k) {
    const double weight = std::exp(weights[k] - top);
    total += weight;
    for (size_t i = 0; i < dim; ++i) out[i] += weight * keys[k][dim + i];
  }
  for (double& value : out) value /= total;
  return out;
}

Answer Expected(const Model& m) {
  Answer answer;
  for (const Layer& l : m.layer) {
    auto& out = answer.out.emplace_back();
    auto& kept = answer.kept.emplace_back();
    for (int token = 0; token < m.tokens; ++token) {
      for (int kv_head = 0; kv_head < m.kv_heads; ++kv_head) {
        std::vector<double> newest = Prepared(m, l, token, m.q_heads() + kv_head);
        const auto value = Prepared(m, l, token, m.q_heads() + m.kv_heads + kv_head);
        newest.insert(newest.end(), value.begin(), value.end());
        kept.push_back(newest);
        std::vector<std::vector<double>> keys;
        for (int k = m.Oldest(l, token); k < m.context[static_cast<size_t>(token)]; ++k) {
          keys.push_back(KeyOf(m, l, newest, token, kv_head, k));
        }
        for (int row = 0; row < m.group; ++row) {
          std::vector<double> q = Prepared(m, l, token, kv_head * m.group + row);
          for (double& x : q) x = Rounded(ASHLAR_BF16, x);
          const std::vector<double> head =
              keys.empty() ? std::vector<double>(q.size(), NAN) : Attend(keys, q);
          out.insert(out.end(), head.begin(), head.end());
        }
      }
    }
  }
  return answer;
}

struct Results {
  std::vector<uint16_t> out;
  int ring_errors = 0;
};

void FillPlaces(const Model& m, Layer& l, gpu_kernels::LayerPlaces& places) {
  const auto data = [](const std::vector<float>& values) {
    return values.empty() ? nullptr : values.data();
  };
  places.q_norm = data(l.q_norm);
  places.k_norm = data(l.k_norm);
  places.inv_freq = data(l.inv_freq);
  places.kv_base = reinterpret_cast<char*>(l.arena.data()) + m.cache.layer_offset;
  places.block_table = l.table.data();
  places.slots = l.slots.data();
  places.table_stride = m.table_stride;
  places.window = l.window;
}

// Leaves K and V in the layers' arenas.
Results RunLayers(Random& random, Model& m) {
  const int64_t tokens = m.tokens, dim = m.dim;
  std::vector<uint16_t> all;
  std::vector<uint64_t> qkv(static_cast<size_t>(tokens * m.heads() * dim / 2));
  std::vector<uint64_t> out(static_cast<size_t>(tokens * m.q_heads() * dim / 2));
  Results results;
  auto p = std::make_unique<LayersParams>();
  p->layers = m.layers;
  p->tokens = m.tokens;
  for (int layer = 0; layer < m.layers; ++layer) {
    Layer& l = m.layer[static_cast<size_t>(layer)];
    FillPlaces(m, l, p->layer[layer]);
    for (float value : l.qkv) all.push_back(gpu_kernels::Store<BF16>(value).bits);
  }
  ashlar_qkv_prepare& a = p->prepare;
  a.qkv = gpu_test::Dense(nullptr, ASHLAR_BF16, {tokens, m.heads() * dim});
  a.q_out = gpu_test::Dense(nullptr, ASHLAR_BF16, {tokens, m.q_heads(), dim});
  a.eps = 1e-6f;
  a.positions = m.positions.data();
  a.rotary_dim = m.dim;
  a.rope_scale = 1.1f;
  a.rope_style = m.style;
  a.kv = m.cache.view;
  ashlar_attention& b = p->attention;
  b.out = gpu_test::Dense(nullptr, ASHLAR_BF16, {tokens, m.q_heads(), dim});
  b.context = m.context.data();
  b.max_query = 1;
  b.scale = 1 / std::sqrt(static_cast<float>(dim));
  results.out.resize(2 * out.size() * static_cast<size_t>(m.layers));
  std::vector<gpu::Vector> ring(kThreads + 64);
  for (gpu::Vector& vector : ring) vector.word[0] = static_cast<uint32_t>(random.Int(0, 1 << 30));
  EXPECT_TRUE(TakesAttention(*p));
  const Around around{p.get(),    all.data(),  results.out.data(),  qkv.data(),
                      out.data(), ring.data(), &results.ring_errors};
  if (m.cache.view.dtype == ASHLAR_BF16) {
    m.dim == 128 ? Launch<BF16, 128>(m.ranks, around) : Launch<BF16, 64>(m.ranks, around);
  } else {
    m.dim == 128 ? Launch<F8, 128>(m.ranks, around) : Launch<F8, 64>(m.ranks, around);
  }
  return results;
}

// Rounding of the cache and of out, as conformance's step case allows it.
void CheckOut(const Model& m, const Answer& want, const Results& got) {
  const ashlar_dtype dtype = m.cache.view.dtype;
  size_t at = 0;
  for (const auto& layer : want.out) {
    double largest = 1, worst = 0;
    for (double value : layer) {
      if (!std::isnan(value)) largest = std::max(largest, std::fabs(value));
    }
    const double step = std::min(gpu_test::StepOf(dtype), gpu_test::StepOf(ASHLAR_BF16));
    for (double value : layer) {
      const uint16_t bits = got.out[at++];
      if (std::isnan(value)) {
        ASSERT_EQ(bits, 0) << "out of an idle token";
        continue;
      }
      const double error = std::fabs(double{Load(BF16{bits})} - value) / (largest * step * 2);
      worst = std::max(worst, std::isnan(error) ? INFINITY : error);
    }
    EXPECT_LE(worst, 1) << "of the tolerance";
  }
}

// New entries as they should be, every other byte as it was.
void CheckCache(const Model& before, const Model& after, const Answer& want) {
  const ashlar_dtype dtype = after.cache.view.dtype;
  for (size_t layer = 0; layer < after.layer.size(); ++layer) {
    const Layer& l = after.layer[layer];
    std::vector<uint8_t> expected = before.layer[layer].arena;
    for (int unit = 0; unit < after.tokens * after.kv_heads; ++unit) {
      const int token = unit / after.kv_heads;
      const int newest = after.context[static_cast<size_t>(token)] - 1;
      if (newest < 0) continue;
      const int64_t entry = after.Entry(l, token, unit % after.kv_heads, newest);
      const auto& kept = want.kept[layer][static_cast<size_t>(unit)];
      for (int i = 0; i < 2 * after.dim; ++i) {
        const double value = kept[static_cast<size_t>(i)];
        const double near = gpu_test::StepOf(dtype) * std::max(std::fabs(value), 0x1p-6) + 3e-4;
        const auto* stored = l.arena.data() + entry;
        ASSERT_NEAR(double{gpu_kernels::LoadAs(dtype, stored, i)}, value, near) << "K or V";
      }
      const int64_t bytes = 2 * after.dim * gpu_kernels::ElementBytes(dtype);
      std::copy_n(l.arena.begin() + entry, bytes, expected.begin() + entry);
    }
    EXPECT_TRUE(expected == l.arena) << "another entry was written";
  }
}

void Check(Random& random, Model& m) {
  SCOPED_TRACE(m.text);
  const Model before = m;
  const Answer want = Expected(m);
  const Results got = RunLayers(random, m);
  EXPECT_EQ(got.ring_errors, 0);
  CheckOut(m, want, got);
  CheckCache(before, m, want);
}

// Shapes and values are new each time; ASHLAR_SEED, with as many rounds, repeats a run.
TEST(LayerAttention, AttendsAsLoopsDo) {
  const char* given = std::getenv("ASHLAR_SEED");
  const char* rounds = std::getenv("ASHLAR_ROUNDS");
  uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::cout << "ASHLAR_SEED=" << seed << std::endl;  // known even when the run aborts
  for (int left = rounds != nullptr ? std::atoi(rounds) : 2; left > 0; --left) {
    for (const ashlar_dtype dtype : {ASHLAR_BF16, ASHLAR_F8_E4M3}) {
      for (const int dim : {64, 128}) {
        Random random(seed++);
        Model m = MakeModel(random, dtype, dim);
        Check(random, m);
        if (HasFailure()) return;
      }
    }
  }
}

// Idle tokens among others and alone, and more keys than all stages hold.
TEST(LayerAttention, AttendsWhateverIsIdleOrLong) {
  for (const std::vector<int>& contexts :
       {std::vector<int>{0, 70, 0, 33}, {90, 0, 17}, {0}, {4200}}) {
    for (const int dim : {64, 128}) {
      Random random(contexts.size());
      Model m = MakeModel(random, ASHLAR_BF16, dim, contexts);
      Check(random, m);
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace ashlar::hopper
