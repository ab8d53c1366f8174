// Attention with 16-bit queries over many short and long sequences: what a row for prompts is for.
// Strides have gaps, and entries that no query sees are NaNs. The portable row is checked against
// the reference; sequences that would take the reference too long are checked against that row.
#include <algorithm>
#include <numeric>

#include "gpu/cases.h"
#include "gpu/number.h"

namespace ashlar::gpu_test {
namespace {

using gpu_kernels::LoadAs;
using gpu_kernels::StoreAs;

struct PrefillProblem {
  ashlar_kv_view view{};
  int q_heads = 0, window = 0;
  std::vector<int32_t> starts{0}, contexts, table;
  int64_t table_stride = 0;
  std::vector<uint16_t> arena, q;
  std::string text;

  int64_t tokens() const { return starts.back(); }
  int Queries(size_t s) const { return starts[s + 1] - starts[s]; }
  int Oldest(size_t s) const {
    return window > 0 ? std::max(0, contexts[s] - Queries(s) - window + 1) : 0;
  }
};

// Normals of one type; an offset into them is as good as new ones.
std::vector<uint16_t> Values(Random& random, ashlar_dtype dtype, double deviation) {
  std::vector<uint16_t> values(1 << 15);
  const std::vector<float> normals = random.Normals(static_cast<int64_t>(values.size()), deviation);
  for (size_t i = 0; i < values.size(); ++i) {
    StoreAs(dtype, values.data(), static_cast<int64_t>(i), normals[i]);
  }
  return values;
}

void ChooseSequences(Random& random, bool large, PrefillProblem& p) {
  const int64_t most = large ? 3000 : 260;
  // Elements of queries and of keys, which bound what a case takes.
  int64_t queries_left = (large ? 1 << 23 : 1 << 20) / (p.q_heads * p.view.head_dim);
  int64_t keys_left = (large ? 1 << 23 : 1 << 20) / (p.view.kv_heads * p.view.head_dim);
  const bool late = random.Chance(0.3);  // few tokens late in a long context
  const int64_t sequences = random.Int(1, late ? 2 : large ? 40 : 6);
  for (int s = 0; s < sequences && queries_left > 0 && keys_left > 0; ++s) {
    int64_t queries = random.Chance(0.5) ? random.Int(1, 20) : random.Int(1, late ? 100 : most);
    queries = std::min({queries, queries_left, keys_left});
    int64_t before = late                 ? random.Int(most, 2 * most)
                     : random.Chance(0.5) ? 0
                                          : random.Int(0, most);
    before = std::min(before, keys_left - queries);
    p.starts.push_back(p.starts.back() + static_cast<int32_t>(queries));
    p.contexts.push_back(static_cast<int32_t>(before + queries));
    if (s < 6) p.text += " " + std::to_string(queries) + "/" + std::to_string(before + queries);
    queries_left -= queries;
    keys_left -= before + queries;
  }
}

// Strides from the innermost outwards, each with or without a gap, in one of two orders.
int64_t ChooseStrides(Random& random, ashlar_kv_view& kv) {
  const auto gap = [&] { return random.Chance(0.3) ? 16 * random.Int(1, 5) : 0; };
  const int64_t entry = 4 * kv.head_dim;
  if (random.Chance(0.5)) {
    kv.token_stride = entry + gap();
    kv.head_stride = kv.token_stride * kv.block_tokens + gap();
    kv.block_stride = kv.head_stride * kv.kv_heads + gap();
  } else {
    kv.head_stride = entry + gap();
    kv.token_stride = kv.head_stride * kv.kv_heads + gap();
    kv.block_stride = kv.token_stride * kv.block_tokens + gap();
  }
  return kv.block_stride * kv.blocks;
}

PrefillProblem MakePrefill(Random& random, bool large) {
  PrefillProblem p;
  ashlar_kv_view& kv = p.view;
  kv.dtype = random.Pick<ashlar_dtype>({ASHLAR_BF16, ASHLAR_F16});
  kv.head_dim = kv.head_dim_v = random.Pick({64, 128, 128, 256});
  kv.kv_heads = random.Pick({1, 2, large ? 8 : 3});
  kv.block_tokens = random.Pick({16, 32, 48, 64, 128});
  const int group = static_cast<int>(random.Chance(0.05) ? 40 : random.Int(1, 16));
  p.q_heads = kv.kv_heads * group;
  if (random.Chance(0.5)) p.window = static_cast<int>(random.Int(1, large ? 1500 : 200));
  ChooseSequences(random, large, p);
  p.text = "head " + std::to_string(kv.head_dim) + " kv_heads " + std::to_string(kv.kv_heads) +
           " group " + std::to_string(group) + " block " + std::to_string(kv.block_tokens) +
           " window " + std::to_string(p.window) + (kv.dtype == ASHLAR_BF16 ? " bf16" : " f16") +
           p.text;

  int64_t blocks = 1;
  for (size_t s = 0; s < p.contexts.size(); ++s) {
    const int64_t entries = (p.contexts[s] + kv.block_tokens - 1) / kv.block_tokens;
    p.table_stride = std::max(p.table_stride, entries + 1);
    blocks += entries - p.Oldest(s) / kv.block_tokens;
  }
  kv.blocks = blocks;
  p.arena.assign(static_cast<size_t>(ChooseStrides(random, kv) / 2), 0xffff);
  std::vector<int32_t> free(static_cast<size_t>(blocks - 1));
  std::iota(free.begin(), free.end(), 1);
  std::shuffle(free.begin(), free.end(), random.engine());
  p.table.assign(p.contexts.size() * static_cast<size_t>(p.table_stride), -12345);
  const std::vector<uint16_t> values = Values(random, kv.dtype, 1);
  for (size_t s = 0; s < p.contexts.size(); ++s) {
    int32_t* const table = p.table.data() + static_cast<int64_t>(s) * p.table_stride;
    for (int at = p.Oldest(s) / kv.block_tokens * kv.block_tokens; at < p.contexts[s]; ++at) {
      int32_t& block = table[at / kv.block_tokens];
      if (block < 0) block = free.back(), free.pop_back();
      if (at < p.Oldest(s)) continue;
      for (int head = 0; head < kv.kv_heads; ++head) {
        const int64_t to = block * kv.block_stride + head * kv.head_stride +
                           at % kv.block_tokens * kv.token_stride;
        const int64_t from = random.Int(0, static_cast<int64_t>(values.size()) - 2 * kv.head_dim);
        std::copy_n(values.begin() + from, 2 * kv.head_dim, p.arena.begin() + to / 2);
      }
    }
  }
  const std::vector<uint16_t> queries = Values(random, kv.dtype, 2);
  p.q.resize(static_cast<size_t>(p.tokens() * p.q_heads * kv.head_dim));
  for (size_t i = 0; i < p.q.size(); i += 64) {
    std::copy_n(queries.begin() + random.Int(0, (1 << 15) - 64), 64, p.q.begin() + i);
  }
  return p;
}

int RowNamed(const Side& side, const std::string& suffix) {
  for (int row = 0; row < side.table().row_count; ++row) {
    if (std::string(side.table().rows[row].name).ends_with(suffix)) return row;
  }
  return -1;
}

struct Result {
  std::vector<float> out;
  std::vector<uint16_t> arena;  // as the op has left it
};

// Queries and results in the cache's type, or in float32 as the reference takes them.
Result Run(const Side& side, int row, const PrefillProblem& p, ashlar_dtype dtype) {
  const auto count = static_cast<int64_t>(p.q.size());
  std::vector<float> q(p.q.size());
  for (int64_t i = 0; i < count; ++i) q[size_t(i)] = LoadAs(p.view.dtype, p.q.data(), i);
  const bool wide = dtype == ASHLAR_F32;
  const Array<uint16_t> arena(side, p.arena);
  const Array<uint16_t> q16(side, p.q), out16(side, std::vector<uint16_t>(p.q.size(), 0xffff));
  const Array<float> q32(side, wide ? q : std::vector<float>(1));
  const Array<float> out32(side, std::vector<float>(wide ? p.q.size() : 1, NAN));
  const Array<int32_t> starts(side, p.starts), contexts(side, p.contexts), table(side, p.table);
  const std::vector<int64_t> shape = {p.tokens(), p.q_heads, p.view.head_dim};
  ashlar_attention a{};
  a.q = Dense(wide ? static_cast<void*>(q32.data()) : q16.data(), dtype, shape);
  a.out = Dense(wide ? static_cast<void*>(out32.data()) : out16.data(), dtype, shape);
  a.kv = p.view;
  a.kv.base = arena.data();
  a.block_table = table.data();
  a.table_stride = p.table_stride;
  a.query_start = starts.data();
  a.context = contexts.data();
  a.sequences = static_cast<int32_t>(p.contexts.size());
  for (size_t s = 0; s < p.contexts.size(); ++s) {
    a.max_query = std::max(a.max_query, p.Queries(s));
    a.max_context = std::max(a.max_context, p.contexts[s]);
  }
  a.scale = 1 / std::sqrt(static_cast<float>(p.view.head_dim));
  a.window = p.window;
  side.Must(side.table().attention(side.device(), side.stream(), row, &a));
  if (wide) return {out32.Read(), {}};
  const std::vector<uint16_t> bits = out16.Read();
  std::vector<float> out(bits.size());
  for (int64_t i = 0; i < count; ++i) out[size_t(i)] = LoadAs(dtype, bits.data(), i);
  return {out, arena.Read()};
}

// The cache with zeros where an op may write them: values of last blocks past their contexts.
std::vector<uint16_t> Cleared(const PrefillProblem& p) {
  const ashlar_kv_view& kv = p.view;
  std::vector<uint16_t> arena = p.arena;
  for (size_t s = 0; s < p.contexts.size(); ++s) {
    const int last = (p.contexts[s] - 1) / kv.block_tokens;
    const int64_t block = p.table[s * static_cast<size_t>(p.table_stride) + size_t(last)];
    for (int at = p.contexts[s]; at < (last + 1) * kv.block_tokens; ++at) {
      for (int head = 0; head < kv.kv_heads; ++head) {
        const int64_t entry = block * kv.block_stride + head * kv.head_stride +
                              at % kv.block_tokens * kv.token_stride;
        std::fill_n(arena.begin() + entry / 2 + kv.head_dim, kv.head_dim, uint16_t{0});
      }
    }
  }
  return arena;
}

// Whether the stand-in for the vendor's library (host_sdpa.cc) has something of this to clear.
bool StandInClears(const PrefillProblem& p) {
  const ashlar_kv_view& kv = p.view;
  if (p.window > 0 || kv.head_dim > 128 || kv.block_tokens == 48) return false;
  for (size_t s = 0; s < p.contexts.size(); ++s) {
    const bool is_long = p.Queries(s) * p.q_heads / kv.kv_heads > 16;
    if (is_long && p.contexts[s] % kv.block_tokens != 0) return true;
  }
  return false;
}

}  // namespace

void PrefillCase(const Context& c) {
  // Whatever has no graphs is the host executor, which large problems would take minutes.
  const bool on_host = c.plugin.table().graph_begin == nullptr;
  const bool large = !on_host && c.random.Chance(0.5);
  const PrefillProblem p = MakePrefill(c.random, large);
  const int portable = RowNamed(c.plugin, "_PAGED");
  const std::vector<float> want =
      (large ? Run(c.plugin, portable, p, p.view.dtype) : Run(c.reference, 0, p, ASHLAR_F32)).out;
  double largest = 1;
  for (float value : want) largest = std::max(largest, std::fabs(double{value}));
  const std::vector<double> tolerance(want.size(),
                                      largest * (p.view.dtype == ASHLAR_F16 ? 0x1p-10 : 0x1p-7));
  const std::vector<uint16_t> cleared = Cleared(p);
  for (const char* suffix : {"_PAGED", "_HOPPER", "_CUDNN"}) {
    const int row = RowNamed(c.plugin, suffix);
    if (row < 0 || (large && row == portable)) continue;
    const std::string name = std::string(c.op) + " " + c.plugin.table().rows[row].name;
    const Result got = Run(c.plugin, row, p, p.view.dtype);
    c.report.Compare(name, p.text, got.out, want, tolerance);
    const bool clears = got.arena != p.arena;
    bool left = true;
    for (size_t i = 0; clears && i < p.arena.size(); ++i) {
      left = left && (got.arena[i] == p.arena[i] || got.arena[i] == cleared[i]);
    }
    const bool vendor = std::string(suffix) == "_CUDNN";
    c.report.Expect(left && (vendor || !clears), c.op + std::string(" cache"), p.text);
    if (!vendor || !on_host) continue;
    c.report.Expect(clears == StandInClears(p), c.op + std::string(" by the library"), p.text);
  }
}

}  // namespace ashlar::gpu_test
