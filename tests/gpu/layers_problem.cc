#include "gpu/layers_problem.h"

#include <algorithm>
#include <numeric>

#include "gpu/stored.h"

namespace ashlar::gpu_test {
namespace {

// Rows of a length of one, nearly.
LayerMatrix MakeMatrix(Random& random, std::vector<int64_t> rows, int64_t cols, bool f8) {
  LayerMatrix m;
  m.desc.cols = cols;
  m.desc.fp8 = f8 ? 1 : 0;
  for (int64_t count : rows) {
    m.desc.dtype[m.desc.parts] = ASHLAR_BF16;
    m.desc.rows[m.desc.parts++] = count;
    std::vector<uint16_t>& part = m.parts.emplace_back();
    const double deviation = 1 / std::sqrt(static_cast<double>(cols));
    for (float value : random.Normals(count * cols, deviation)) {
      part.push_back(gpu_kernels::Store<gpu_kernels::BF16>(value).bits);
    }
  }
  return m;
}

LayerGroup MakeGroup(Random& random, const LayersProblem& p, int blocks) {
  const int block_tokens = p.cache.view.block_tokens;
  LayerGroup g;
  g.table.resize(static_cast<size_t>(blocks));
  std::iota(g.table.begin(), g.table.end(), 0);
  std::shuffle(g.table.begin(), g.table.end(), random.engine());
  g.stride = blocks / p.tokens();
  for (size_t s = 0; s < p.context.size(); ++s) {
    const int newest = p.context[s] - 1;
    const size_t at =
        s * static_cast<size_t>(g.stride) + size_t(std::max(0, newest)) / block_tokens;
    g.slots.push_back(newest < 0 ? -1
                                 : int64_t{g.table[at]} * block_tokens + newest % block_tokens);
  }
  return g;
}

// All keys but a sequence's newest, which the step brings; what no token sees are NaNs.
void FillKeys(Random& random, const LayersProblem& p, LayerValues& layer) {
  const ashlar_kv_view& kv = p.cache.view;
  const LayerGroup& g = p.groups[static_cast<size_t>(layer.group)];
  layer.arena.assign(static_cast<size_t>(p.cache.bytes), 0xff);
  for (int s = 0; s < p.active; ++s) {
    const int context = p.context[static_cast<size_t>(s)];
    const int oldest = layer.window > 0 ? std::max(0, context - layer.window) : 0;
    for (int key = oldest; key < context - 1; ++key) {
      const auto block = g.table[static_cast<size_t>(s * g.stride + key / kv.block_tokens)];
      for (int head = 0; head < kv.kv_heads; ++head) {
        uint8_t* entry = layer.arena.data() + EntryAt(p.cache, block, head, key % kv.block_tokens);
        const std::vector<float> values = random.Normals(2 * kv.head_dim);
        for (int i = 0; i < 2 * kv.head_dim; ++i) {
          gpu_kernels::StoreAs(kv.dtype, entry, i, values[static_cast<size_t>(i)]);
        }
      }
    }
  }
}

std::vector<float> NearOne(Random& random, int64_t count) {
  std::vector<float> values = random.Normals(count, 0.2);
  for (float& value : values) value += 1;
  return values;
}

LayerValues MakeLayer(Random& random, const LayersProblem& p, bool biases, bool head_norms) {
  const int64_t dim = p.cache.view.head_dim, q = p.q_heads * dim, kv = p.cache.view.kv_heads * dim;
  LayerValues layer;
  const bool f8 = p.float8_weights;
  layer.weight[kQkv] = MakeMatrix(random, {q, kv, kv}, p.hidden, f8);
  layer.weight[kOutput] = MakeMatrix(random, {p.hidden}, q, f8);
  layer.weight[kGateUp] = MakeMatrix(random, {p.wide, p.wide}, p.hidden, f8);
  layer.weight[kDown] = MakeMatrix(random, {p.hidden}, p.wide, f8);
  for (std::vector<float>& norm : layer.norm) norm = NearOne(random, p.hidden);
  if (biases) layer.bias[0] = random.Normals(q + 2 * kv);
  if (biases && random.Chance(0.5)) layer.bias[1] = random.Normals(p.hidden);
  if (head_norms) layer.q_norm = NearOne(random, dim), layer.k_norm = NearOne(random, dim);
  layer.group = static_cast<int>(random.Int(0, 1));
  if (random.Chance(0.3)) layer.window = static_cast<int>(random.Int(1, 100));
  FillKeys(random, p, layer);
  return layer;
}

void MakeContexts(const Context& c, LayersProblem& p) {
  const bool many = p.misfit == kTokens;
  const int64_t tokens = many ? c.random.Int(5, 8) : c.random.Int(1, 4);
  const int longest = c.large && tokens < 3 ? 3000 : c.large ? 1000 : 150;
  const bool all_idle = c.random.Chance(0.05);  // as when an engine warms up
  for (int64_t i = 0; i < tokens; ++i) {
    const bool idle = all_idle || c.random.Chance(0.1);
    p.context.push_back(idle ? 0 : int(c.random.Int(1, c.random.Chance(0.3) ? 40 : longest)));
  }
  std::stable_partition(p.context.begin(), p.context.end(), [](int n) { return n > 0; });
  p.active = static_cast<int>(
      std::count_if(p.context.begin(), p.context.end(), [](int context) { return context > 0; }));
}

}  // namespace

LayersProblem MakeLayersProblem(const Context& c) {
  Random& random = c.random;
  LayersProblem p;
  if (random.Chance(0.25)) p.misfit = static_cast<Misfit>(random.Int(1, kMisfits - 1));
  MakeContexts(c, p);
  // More pairs than a device attends for at a time.
  const bool wide = c.large && p.tokens() < 3 && random.Chance(0.25);
  const int head_dim = wide ? 64 : random.Pick({64, 128, 128});
  const int block_tokens = random.Pick({16, 32, 64});
  const bool many = !c.large && p.tokens() > 2;  // for a host executor
  const int kv_heads = wide      ? 40
                       : c.large ? random.Pick({4, 8, 8, 8})
                       : many    ? random.Pick({1, 2})
                                 : random.Pick({1, 2, 4});
  const int group = static_cast<int>(random.Int(1, wide ? 1 : c.large ? 4 : kv_heads < 4 ? 3 : 2));
  p.q_heads = kv_heads * group;
  p.hidden = 64 * random.Int(1, c.large ? 20 : 3);
  p.wide = 64 * random.Int(1, c.large ? 50 : 4);
  // Of small layers three tokens and four are left to the ops.
  const bool whole = c.large && p.misfit == kNone && p.tokens() > 1 && random.Chance(0.15);
  if (whole) p.hidden = 4096, p.wide = 12288;
  const int longest = *std::max_element(p.context.begin(), p.context.end());
  const int blocks = static_cast<int>(p.tokens()) * (longest / block_tokens + 1);
  const auto dtype = random.Pick<ashlar_dtype>({ASHLAR_BF16, ASHLAR_F8_E4M3});
  p.cache = MakeCache(random, dtype, blocks, block_tokens, kv_heads, head_dim);
  for (int i = 0; i < 2; ++i) p.groups.push_back(MakeGroup(random, p, blocks));
  if (random.Chance(0.3)) p.style = ASHLAR_ROPE_INTERLEAVED;
  if (random.Chance(0.3)) p.activation = ASHLAR_GELU_TANH;
  for (int i = 0; i < head_dim / 2; ++i) {
    p.inv_freq.push_back(std::pow(1e4f, -2.0f * static_cast<float>(i) / float(head_dim)));
  }
  p.float8_weights = random.Chance(0.4);
  const bool biases = random.Chance(0.4), norms = random.Chance(0.5);
  const int64_t layers = whole ? 1 : random.Int(p.misfit == kScale ? 2 : 1, many ? 2 : 3);
  for (int64_t i = 0; i < layers; ++i) {
    p.layers.push_back(MakeLayer(random, p, biases, norms));
  }
  if (p.misfit == kNone && random.Chance(0.3)) {
    p.first_call = static_cast<size_t>(random.Int(0, layers - 1));
  }
  if (p.misfit == kWeight) p.layers.back().weight[kDown].desc.fp8 ^= 1;
  p.x = Rounded(ASHLAR_BF16, random.Normals(p.tokens() * p.hidden));
  if (p.float8_weights && random.Chance(0.3)) {  // far from float16, in which it is multiplied
    for (size_t i = 0; i < p.x.size(); ++i) {
      p.x[i] *= static_cast<int64_t>(i) / p.hidden % 2 == 0 ? 0x1p40f : 0x1p-100f;
    }
  }
  const char* misfits[] = {"", " tokens", " weight", " scale"};
  p.text = "layers " + std::to_string(layers) + " hidden " + std::to_string(p.hidden) + " wide " +
           std::to_string(p.wide) + " head " + std::to_string(head_dim) + " kv_heads " +
           std::to_string(kv_heads) + " group " + std::to_string(group) + " block " +
           std::to_string(block_tokens) + NameOf(dtype) +
           (p.float8_weights ? " weights float8" : "") + (biases ? " bias" : "") +
           (norms ? " norms" : "");
  for (int context : p.context) p.text += " " + std::to_string(context);
  if (p.misfit != kNone) p.text += std::string(" misfit") + misfits[p.misfit];
  return p;
}

}  // namespace ashlar::gpu_test
