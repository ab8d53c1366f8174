// One sequence's next token: its preparation and its attention, which a plugin may carry out
// together, over a paged cache whose unseen entries are NaNs.
#include <algorithm>
#include <numeric>

#include "gpu/paged_cache.h"
#include "gpu/stored.h"

namespace ashlar::gpu_test {
namespace {

struct Step {
  Cache cache;
  std::vector<uint8_t> arena;
  std::vector<int32_t> table, context;  // of sequences
  int64_t table_stride = 0;
  int q_heads = 0, window = 0;
  std::vector<int64_t> slots;
  std::vector<float> qkv, q_norm, k_norm, inv_freq;
  ashlar_rope_style style = ASHLAR_ROPE_HALF;
  bool reads = false;  // what was prepared, before its attention
  std::string text;

  int sequences() const { return static_cast<int>(context.size()); }
};

// Keys of a sequence but its newest, which the step brings.
void FillKeys(Random& random, Step& s, int sequence) {
  const ashlar_kv_view& kv = s.cache.view;
  const int context = s.context[static_cast<size_t>(sequence)];
  const int oldest = s.window > 0 ? std::max(0, context - s.window) : 0;
  const auto block_of = [&](int key) {
    return s.table[static_cast<size_t>(sequence * s.table_stride + key / kv.block_tokens)];
  };
  for (int key = oldest; key < context - 1; ++key) {
    for (int head = 0; head < kv.kv_heads; ++head) {
      uint8_t* entry =
          s.arena.data() + EntryAt(s.cache, block_of(key), head, key % kv.block_tokens);
      const std::vector<float> values = random.Normals(2 * kv.head_dim);
      for (int i = 0; i < 2 * kv.head_dim; ++i) {
        gpu_kernels::StoreAs(kv.dtype, entry, i, values[static_cast<size_t>(i)]);
      }
    }
  }
  const int newest = context - 1;
  s.slots.push_back(
      context == 0 ? -1 : int64_t{block_of(newest)} * kv.block_tokens + newest % kv.block_tokens);
}

Step MakeStep(const Context& c) {
  Random& random = c.random;
  Step s;
  const auto dtype = random.Pick<ashlar_dtype>({ASHLAR_BF16, ASHLAR_F8_E4M3});
  const int head_dim = random.Pick({64, 128}), block_tokens = random.Pick({16, 32, 64});
  const int kv_heads = c.large ? random.Pick({4, 7, 8, 8, 16, 32}) : random.Pick({1, 2, 4, 4});
  const int group = static_cast<int>(random.Int(1, 7));
  s.q_heads = kv_heads * group;
  if (random.Chance(0.3)) s.window = static_cast<int>(random.Int(1, 200));
  s.reads = random.Chance(0.3);
  const int sequences = static_cast<int>(random.Chance(0.7) ? 1 : random.Int(2, 8));
  const int longest = c.large && sequences < 3 ? 5000 : c.large ? 1500 : 200;
  int64_t& entries = s.table_stride = 1;
  for (int i = 0; i < sequences; ++i) {
    const int context = static_cast<int>(random.Int(1, random.Chance(0.3) ? 40 : longest));
    s.context.push_back(random.Chance(0.1) ? 0 : context);
    entries = std::max<int64_t>(entries, (context + block_tokens - 1) / block_tokens);
    s.text += " " + std::to_string(s.context.back());
  }
  // The reference has no idle sequences: one that is stands behind the others.
  std::stable_partition(s.context.begin(), s.context.end(),
                        [](int context) { return context > 0; });
  const int blocks = static_cast<int>(sequences * entries) + 2;
  s.cache = MakeCache(random, dtype, blocks, block_tokens, kv_heads, head_dim);
  s.table.resize(static_cast<size_t>(blocks));
  std::iota(s.table.begin(), s.table.end(), 0);
  std::shuffle(s.table.begin(), s.table.end(), random.engine());
  s.arena.assign(static_cast<size_t>(s.cache.bytes), 0xff);
  for (int i = 0; i < sequences; ++i) FillKeys(random, s, i);
  s.qkv = Rounded(ASHLAR_BF16,
                  random.Normals(int64_t{sequences} * (s.q_heads + 2 * kv_heads) * head_dim));
  if (random.Chance(0.6)) s.q_norm = random.Normals(head_dim);
  if (random.Chance(0.6)) s.k_norm = random.Normals(head_dim);
  const bool rotates = random.Chance(0.9);
  for (int i = 0; rotates && i < head_dim / 2; ++i) {
    s.inv_freq.push_back(
        std::pow(1e4f, -2.0f * static_cast<float>(i) / static_cast<float>(head_dim)));
  }
  if (random.Chance(0.3)) s.style = ASHLAR_ROPE_INTERLEAVED;
  s.text = "head " + std::to_string(head_dim) + " kv_heads " + std::to_string(kv_heads) +
           " group " + std::to_string(group) + " block " + std::to_string(block_tokens) +
           " window " + std::to_string(s.window) + NameOf(dtype) + (s.reads ? " read" : "") +
           s.text;
  return s;
}

struct Results {
  std::vector<float> q, out;
  std::vector<uint8_t> cache;
};

Results Run(const Side& side, const Step& s) {
  const ashlar_dtype dtype = side.is_reference() ? ASHLAR_F32 : ASHLAR_BF16;
  const ashlar_kv_view& view = s.cache.view;
  const int64_t heads = s.q_heads + 2 * view.kv_heads, dim = view.head_dim;
  const int64_t tokens = s.sequences();
  const std::vector<float> none(size_t(tokens * s.q_heads * dim), NAN);
  const Stored qkv(side, dtype, s.qkv), q(side, dtype, none), out(side, dtype, none);
  const Array<float> q_norm(side, s.q_norm), k_norm(side, s.k_norm), freq(side, s.inv_freq, false);
  std::vector<int32_t> positions, starts{0};
  int active = 0;
  for (int32_t context : s.context) {
    positions.push_back(std::max(0, context - 1));
    starts.push_back(starts.back() + 1);
    active += context > 0 ? 1 : 0;
  }
  const Array<int32_t> position(side, positions), start(side, starts);
  const Array<int32_t> context(side, s.context), table(side, s.table);
  const Array<int64_t> slot(side, s.slots);
  const Array<uint8_t> arena(side, s.arena);
  ashlar_qkv_prepare p{};
  p.qkv = Dense(qkv.data(), dtype, {tokens, heads * dim});
  p.q_out = Dense(q.data(), dtype, {tokens, s.q_heads, dim});
  if (!s.q_norm.empty()) p.q_norm = Dense(q_norm.data(), ASHLAR_F32, {dim});
  if (!s.k_norm.empty()) p.k_norm = Dense(k_norm.data(), ASHLAR_F32, {dim});
  p.eps = 1e-6f;
  p.positions = position.data();
  p.inv_freq = s.inv_freq.empty() ? nullptr : freq.data();
  p.rotary_dim = static_cast<int32_t>(2 * s.inv_freq.size());
  p.rope_scale = 1.1f;
  p.rope_style = s.style;
  p.kv = view;
  p.kv.base = arena.data() + s.cache.layer_offset;
  p.slots = slot.data();
  side.Must(side.table().qkv_prepare(side.device(), side.stream(), &p));
  const std::vector<float> before = s.reads ? q.Read() : std::vector<float>();
  ashlar_attention a{};
  const int64_t attended = side.is_reference() ? active : tokens;
  a.q = Dense(q.data(), dtype, {attended, s.q_heads, dim});
  a.out = Dense(out.data(), dtype, {attended, s.q_heads, dim});
  a.kv = p.kv;
  a.block_table = table.data();
  a.table_stride = s.table_stride;
  a.query_start = start.data();
  a.context = context.data();
  a.sequences = static_cast<int32_t>(attended);
  a.max_query = 1;
  a.max_context = *std::max_element(s.context.begin(), s.context.end());
  a.scale = 1 / std::sqrt(static_cast<float>(dim));
  a.window = s.window;
  side.Must(side.table().attention(side.device(), side.stream(), RowNamed(side, "_PAGED"), &a));
  Results results{s.reads ? before : q.Read(), out.Read(), arena.Read()};
  results.out.resize(static_cast<size_t>(active * s.q_heads * dim));  // nobody reads the others
  return results;
}

}  // namespace

// Tolerances as those of qkv_prepare and of attention alone; out is rounded to bfloat16 too, which
// is half a step of it.
void StepCase(const Context& c) {
  const Step s = MakeStep(c);
  const Results want = Run(c.reference, s), got = Run(c.plugin, s);
  const ashlar_dtype dtype = s.cache.view.dtype;
  std::vector<double> near;
  for (float value : want.q) near.push_back(3e-4 + RoundingStep(ASHLAR_BF16) * std::fabs(value));
  c.report.Compare("step q", s.text, got.q, want.q, near);
  const int64_t bytes = gpu_kernels::ElementBytes(dtype);
  std::vector<float> read[2];
  near.clear();
  for (int64_t i = 0; i < static_cast<int64_t>(want.cache.size()) / bytes; ++i) {
    const float value = gpu_kernels::LoadAs(dtype, want.cache.data(), i);
    const bool same = std::memcmp(&want.cache[size_t(i * bytes)], &got.cache[size_t(i * bytes)],
                                  size_t(bytes)) == 0;
    if (same) continue;  // NaNs too
    read[0].push_back(gpu_kernels::LoadAs(dtype, got.cache.data(), i));
    read[1].push_back(value);
    near.push_back(StepOf(dtype) * std::max(std::fabs(double{value}), 0x1p-6) + 3e-4);
  }
  if (!near.empty()) c.report.Compare("step cache", s.text, read[0], read[1], near);
  double largest = 1;
  for (float value : want.out) largest = std::max(largest, std::fabs(double{value}));
  near.assign(want.out.size(), largest * std::min(StepOf(dtype), StepOf(ASHLAR_BF16)) * 2);
  if (!near.empty()) c.report.Compare("step", s.text, got.out, want.out, near);
}

}  // namespace ashlar::gpu_test
