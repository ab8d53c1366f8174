// qkv_prepare and attention over a paged cache whose unseen entries are NaNs.
#include <algorithm>
#include <numeric>

#include "gpu/paged_cache.h"
#include "gpu/stored.h"

namespace ashlar::gpu_test {
namespace {

struct AttentionProblem {
  Cache cache;
  std::vector<uint8_t> arena;
  std::vector<int32_t> query_start{0}, context, table;
  int64_t table_stride = 0;
  int q_heads = 0, window = 0;
  std::vector<float> q;
  std::string text;
};

AttentionProblem MakeAttention(Random& random) {
  AttentionProblem p;
  const auto dtype = random.Pick<ashlar_dtype>({ASHLAR_BF16, ASHLAR_F16, ASHLAR_F8_E4M3});
  const int head_dim = random.Pick({32, 64, 80, 96, 128, 256}), kv_heads = random.Pick({1, 2, 3});
  const bool decodes = random.Chance(0.3);  // a step of decoding: one token each, long contexts
  const int group = static_cast<int>(!decodes && random.Chance(0.1) ? 40 : random.Int(1, 16));
  const int block_tokens = random.Pick({16, 32, 48, 64});
  p.q_heads = kv_heads * group;
  if (!decodes && random.Chance(0.5))
    p.window = static_cast<int>(random.Pick<int64_t>({1, 16, random.Int(2, 200)}));
  // All alike, and nearly as many pairs of sequence and head as the host executor has blocks at a
  // time, or as two for each.
  const bool alike = decodes && random.Chance(0.3);
  const int sequences =
      alike ? random.Pick({30, 60}) / kv_heads : static_cast<int>(random.Int(1, 4));
  const int length = static_cast<int>(random.Int(1, 150));
  const int idle = random.Chance(0.3) ? static_cast<int>(random.Int(1, 3)) : 0;  // behind them
  std::vector<int> first_entries;
  int blocks = 1;
  for (int s = 0; s < sequences; ++s) {
    const int context =
        alike ? length : static_cast<int>(random.Int(1, decodes || random.Chance(0.3) ? 700 : 90));
    int queries = 1;
    if (!decodes && random.Chance(0.5))
      queries = static_cast<int>(random.Int(1, std::min(context, 40)));
    p.query_start.push_back(p.query_start.back() + queries);
    p.context.push_back(context);
    const int oldest = p.window > 0 ? std::max(0, context - queries - p.window + 1) : 0;
    first_entries.push_back(oldest / block_tokens);
    const int entries = (context + block_tokens - 1) / block_tokens;
    p.table_stride = std::max<int64_t>(p.table_stride, entries + 1);
    blocks += entries - first_entries.back();
    p.text += " " + std::to_string(queries) + "/" + std::to_string(context);
  }
  for (int s = 0; s < idle; ++s) {
    p.query_start.push_back(p.query_start.back() + 1);
    p.context.push_back(0);
    p.text += " idle";
  }
  p.text = "head " + std::to_string(head_dim) + " kv_heads " + std::to_string(kv_heads) +
           " group " + std::to_string(group) + " block " + std::to_string(block_tokens) +
           " window " + std::to_string(p.window) + NameOf(dtype) + p.text;
  p.cache = MakeCache(random, dtype, blocks, block_tokens, kv_heads, head_dim);
  p.arena.assign(static_cast<size_t>(p.cache.bytes), 0xff);
  std::vector<int32_t> free(static_cast<size_t>(blocks - 1));
  std::iota(free.begin(), free.end(), 1);
  std::shuffle(free.begin(), free.end(), random.engine());
  p.table.assign(static_cast<size_t>((sequences + idle) * p.table_stride), -12345);
  for (int s = 0; s < sequences; ++s) {
    const int oldest_entry = first_entries[static_cast<size_t>(s)];
    const int context = p.context[static_cast<size_t>(s)];
    const int queries =
        p.query_start[static_cast<size_t>(s) + 1] - p.query_start[static_cast<size_t>(s)];
    const int oldest = p.window > 0 ? std::max(0, context - queries - p.window + 1) : 0;
    for (int position = oldest_entry * block_tokens; position < context; ++position) {
      int32_t& block = p.table[static_cast<size_t>(s * p.table_stride + position / block_tokens)];
      if (block < 0) block = free.back(), free.pop_back();
      if (position < oldest) continue;
      for (int head = 0; head < kv_heads; ++head) {
        const std::vector<float> values = random.Normals(2 * head_dim);
        uint8_t* entry = p.arena.data() + EntryAt(p.cache, block, head, position % block_tokens);
        for (int i = 0; i < 2 * head_dim; ++i)
          gpu_kernels::StoreAs(dtype, entry, i, values[static_cast<size_t>(i)]);
      }
    }
  }
  // Far scores come late at times: what was summed before is then scaled down.
  const double spread = dtype == ASHLAR_F8_E4M3 && random.Chance(0.4) ? 12 : 2;
  p.q = random.Normals(int64_t{p.query_start.back()} * p.q_heads * head_dim, spread);
  return p;
}

std::vector<float> Run(const Side& side, const AttentionProblem& p, const std::vector<float>& q,
                       const std::vector<int32_t>& starts, const std::vector<int32_t>& contexts,
                       const std::vector<int32_t>& table) {
  const Array<uint8_t> arena(side, p.arena);
  const Array<float> query(side, q, false), out(side, std::vector<float>(q.size(), NAN));
  const Array<int32_t> start(side, starts), context(side, contexts), blocks(side, table);
  ashlar_attention a{};
  size_t sequences = contexts.size();
  const bool is_reference = side.table().name == std::string("reference");  // has no idle ones
  while (is_reference && contexts[sequences - 1] == 0) --sequences;
  const std::vector<int64_t> shape = {starts[sequences], p.q_heads, p.cache.view.head_dim};
  a.q = Dense(query.data(), ASHLAR_F32, shape);
  a.out = Dense(out.data(), ASHLAR_F32, shape);
  a.kv = p.cache.view;
  a.kv.base = arena.data() + p.cache.layer_offset;
  a.block_table = blocks.data();
  a.table_stride = p.table_stride;
  a.query_start = start.data();
  a.context = context.data();
  a.sequences = static_cast<int32_t>(sequences);
  for (size_t s = 0; s < contexts.size(); ++s) {
    a.max_query = std::max(a.max_query, starts[s + 1] - starts[s]);
    a.max_context = std::max(a.max_context, contexts[s]);
  }
  a.scale = 1 / std::sqrt(static_cast<float>(p.cache.view.head_dim));
  a.window = p.window;
  side.Must(side.table().attention(side.device(), side.stream(), RowNamed(side, "_PAGED"), &a));
  std::vector<float> read = out.Read();
  for (size_t s = 0; s < contexts.size(); ++s) {  // what nobody reads
    const int64_t row = read.size() / static_cast<size_t>(starts.back());
    if (contexts[s] == 0) std::fill_n(read.begin() + starts[s] * row, row, 0.0f);
  }
  return read;
}

}  // namespace

// Queries and weights may be brought to the cache's type (float16 where that has 8 bits), which
// moves each by r = 0.85 * 2^-9 (float16: 2^-12) of itself in the root mean square. Scores of
// deviation s (2; 12 at times with 8 bits) move by r * s, and a result o of weights w and values v
// by r * sqrt(sum of w^2 * (s^2 * (v - o)^2 + v^2)): most where two keys of unlike values have half
// of the weight each. That has a tail and no useful bound: of 1.1 * 10^9 values drawn like these
// with bfloat16, 57 were off by more than 4 * 2^-9 of the largest result, 8 by more than 5 and none
// by more than 6, which is allowed. A cache of 8 bits is allowed as much: 12 * 2^-12 is less than
// 2 * 2^-9.
void AttentionCase(const Context& c) {
  const AttentionProblem p = MakeAttention(c.random);
  const std::vector<float> want = Run(c.reference, p, p.q, p.query_start, p.context, p.table);
  double largest = 1;
  for (float value : want) largest = std::max(largest, std::fabs(double{value}));
  const double step = 1.5 * std::min(StepOf(p.cache.view.dtype), StepOf(ASHLAR_BF16));
  const std::vector<double> tolerance(want.size(), largest * step);
  c.report.Compare(c.op, p.text, Run(c.plugin, p, p.q, p.query_start, p.context, p.table), want,
                   tolerance);
  const std::vector<float> together = Run(c.invariant, p, p.q, p.query_start, p.context, p.table);
  c.report.Compare("attention invariant", p.text, together, want, tolerance);
  // The first sequence's last token alone, bit for bit.
  const int64_t row = int64_t{p.q_heads} * p.cache.view.head_dim;
  const int64_t token = p.query_start[1] - 1;
  const std::vector<float> alone =
      Run(c.invariant, p, {p.q.begin() + token * row, p.q.begin() + (token + 1) * row}, {0, 1},
          {p.context[0]}, {p.table.begin(), p.table.begin() + p.table_stride});
  c.report.Expect(
      std::memcmp(alone.data(), together.data() + token * row, alone.size() * sizeof(float)) == 0,
      "attention alone", p.text);
}

// q as its type, k as the cache's, one step of it where a value lies near a rounding boundary; all
// else in the cache bit for bit.
void QkvCase(const Context& c) {
  const auto dtype = c.random.Pick<ashlar_dtype>({ASHLAR_BF16, ASHLAR_F16, ASHLAR_F8_E4M3});
  const int head_dim = c.random.Pick({32, 64, 80, 96, 128, 256}),
            kv_heads = c.random.Pick({1, 2, 4});
  const int q_heads = kv_heads * static_cast<int>(c.random.Int(1, 5));
  // So many that waves take several heads of a token, on the host executor and on a large device.
  const bool many = c.random.Chance(0.3);
  const int tokens = static_cast<int>(many      ? c.random.Int(250, 300) * (c.large ? 6 : 1)
                                      : c.large ? c.random.Int(1, 200)
                                                : c.random.Int(1, 30));
  const int block_tokens = 16, blocks = tokens / block_tokens + 2;
  const Cache cache = MakeCache(c.random, dtype, blocks, block_tokens, kv_heads, head_dim);
  std::vector<uint8_t> arena(static_cast<size_t>(cache.bytes), 0x3c);
  std::vector<int64_t> slots(blocks * block_tokens);
  std::iota(slots.begin(), slots.end(), 0);
  std::shuffle(slots.begin(), slots.end(), c.random.engine());
  slots.resize(static_cast<size_t>(tokens));
  slots[0] = -1;
  std::vector<int32_t> positions;
  for (int t = 0; t < tokens; ++t) positions.push_back(static_cast<int32_t>(c.random.Int(0, 5000)));
  const int64_t row = int64_t{q_heads + 2 * kv_heads} * head_dim;
  // Some values are past the largest of 8 bits.
  const double spread = c.random.Chance(0.2) ? 300 : 1;
  const ashlar_dtype in_type = PickFloat(c.random), out_type = PickFloat(c.random);
  const std::vector<float> qkv = Rounded(in_type, c.random.Normals(tokens * row, spread));
  const std::vector<float> q_norm = c.random.Normals(head_dim), k_norm = c.random.Normals(head_dim);
  const bool norms = c.random.Chance(0.5), rotates = c.random.Chance(0.8);
  const int rotary = c.random.Chance(0.3) ? head_dim / 2 : head_dim;
  std::vector<float> inv_freq;
  for (int i = 0; i < rotary / 2; ++i) inv_freq.push_back(std::pow(1e4f, -2.0f * i / rotary));
  const auto style = c.random.Chance(0.5) ? ASHLAR_ROPE_HALF : ASHLAR_ROPE_INTERLEAVED;

  std::vector<float> q[2];
  std::vector<uint8_t> caches[2];
  for (int i = 0; i < 2; ++i) {
    const Side& side = i == 0 ? c.reference : c.plugin;
    const ashlar_dtype in_dtype = i == 0 ? ASHLAR_F32 : in_type;
    const ashlar_dtype out_dtype = i == 0 ? ASHLAR_F32 : out_type;
    const Stored in(side, in_dtype, qkv);
    const Array<float> qn(side, q_norm), kn(side, k_norm), freq(side, inv_freq, false);
    const Stored out(side, out_dtype, std::vector<float>(size_t(tokens * q_heads * head_dim), NAN));
    const Array<int32_t> position(side, positions);
    const Array<int64_t> slot(side, slots);
    const Array<uint8_t> memory(side, arena);
    ashlar_qkv_prepare a{};
    a.qkv = Dense(in.data(), in_dtype, {tokens, row});
    a.q_out = Dense(out.data(), out_dtype, {tokens, q_heads, head_dim});
    if (norms) a.q_norm = Dense(qn.data(), ASHLAR_F32, {head_dim});
    if (norms) a.k_norm = Dense(kn.data(), ASHLAR_F32, {head_dim});
    a.eps = 1e-6f;
    a.positions = position.data();
    a.inv_freq = rotates ? freq.data() : nullptr;
    a.rotary_dim = rotary;
    a.rope_scale = 1.1f;
    a.rope_style = style;
    a.kv = cache.view;
    a.kv.base = memory.data() + cache.layer_offset;
    a.slots = slot.data();
    side.Must(side.table().qkv_prepare(side.device(), side.stream(), &a));
    q[i] = out.Read();
    caches[i] = memory.Read();
  }
  const std::string what = "head " + std::to_string(head_dim) + " tokens " + std::to_string(tokens);
  std::vector<double> near;
  for (float value : q[0]) {
    near.push_back((norms ? 3e-4 : 1e-4 * spread) + RoundingStep(out_type) * std::fabs(value));
  }
  c.report.Compare("qkv_prepare q", what, q[1], q[0], near);
  std::vector<float> got, want;
  std::vector<double> tolerance;
  const auto values = static_cast<int64_t>(caches[0].size()) / gpu_kernels::ElementBytes(dtype);
  const double least = dtype == ASHLAR_F8_E4M3 ? 0x1p-6 : 0;  // below it steps are equal
  for (int64_t i = 0; i < values; ++i) {
    want.push_back(gpu_kernels::LoadAs(dtype, caches[0].data(), i));
    got.push_back(gpu_kernels::LoadAs(dtype, caches[1].data(), i));
    tolerance.push_back(StepOf(dtype) * std::max(std::fabs(double{want.back()}), least) +
                        3e-4 * spread);
  }
  c.report.Compare("qkv_prepare cache", what, got, want, tolerance);
}

}  // namespace ashlar::gpu_test
