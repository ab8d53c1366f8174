#include "conformance/attention_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "support/tensor_float.h"

namespace ashlar::testing {
namespace {

constexpr int kLayers = 3;

// First key that any query of the sequence sees.
int FirstVisible(const Sequence& sequence, int window) {
  const int first_query = sequence.context - sequence.queries;
  return window > 0 ? std::max(0, first_query - window + 1) : 0;
}

}  // namespace

std::string AttentionShape::text() const {
  std::string text = fmt::format("{} kv {} block {} head {} kv_heads {} ratio {} window {}{}",
                                 Name(layout), Info(kv_dtype).name, block_tokens, head_dim,
                                 kv_heads, query_ratio, window, exact_queries ? " exact" : "");
  for (const Sequence& s : sequences) text += fmt::format(" {}/{}", s.queries, s.context);
  return text;
}

AttentionCase::AttentionCase(const AttentionShape& shape, Random& random)
    : shape_(shape),
      scale_(1 / std::sqrt(static_cast<float>(shape.head_dim))),
      back_guard_(random.Chance(0.5)) {
  FillSequences(random);
  FillArena(random);
}

void AttentionCase::FillSequences(Random& random) {
  query_start_ = {0};
  for (const Sequence& sequence : shape_.sequences) {
    query_start_.push_back(query_start_.back() + sequence.queries);
    context_.push_back(sequence.context);
    std::vector<float> values =
        random.Normals(int64_t{sequence.context} * shape_.kv_heads * 2 * shape_.head_dim);
    for (float& value : values) value = Rounded(shape_.kv_dtype, value);
    key_value_.push_back(std::move(values));
  }
  // Queries of deviation 2 give some keys most of the weight, as trained models do.
  q_ = random.Normals(int64_t{tokens()} * shape_.q_heads() * shape_.head_dim, 2);
  if (shape_.exact_queries) {
    for (float& value : q_) value = Rounded(shape_.kv_dtype, value);
  }
}

void AttentionCase::FillArena(Random& random) {
  const int sequences = static_cast<int>(shape_.sequences.size());
  // Block 0 is the null block. Blocks behind the window are given back to it, and entries past the
  // context are no block at all.
  int needed = 1, longest = 0;
  for (const Sequence& sequence : shape_.sequences) {
    const int entries = CeilDiv(sequence.context, shape_.block_tokens);
    needed += entries - FirstVisible(sequence, shape_.window) / shape_.block_tokens;
    longest = std::max(longest, entries);
  }
  blocks_ = needed + static_cast<int>(random.Int(0, 3));
  table_stride_ = longest + static_cast<int>(random.Int(0, 3));
  table_.assign(static_cast<size_t>(sequences * table_stride_), INT32_MIN);

  const int64_t element = Info(shape_.kv_dtype).bytes;
  strides_ = StridesOf(shape_.layout, {kLayers, blocks_, shape_.kv_heads, shape_.block_tokens,
                                       2 * shape_.head_dim * element});
  layer_offset_ = random.Int(0, kLayers - 1) * strides_.layer;
  arena_.assign(static_cast<size_t>(strides_.total_bytes), std::byte{0xff});

  std::vector<int32_t> free;
  for (int32_t block = 1; block < blocks_; ++block) free.push_back(block);
  random.Shuffle(free);
  for (int s = 0; s < sequences; ++s) {
    const Sequence& sequence = shape_.sequences[static_cast<size_t>(s)];
    const int first = FirstVisible(sequence, shape_.window);
    for (int entry = 0; entry * shape_.block_tokens < sequence.context; ++entry) {
      int32_t& block = table_[static_cast<size_t>(s * table_stride_ + entry)];
      block = 0;
      if (entry < first / shape_.block_tokens) continue;
      block = free.back();
      free.pop_back();
    }
    for (int position = first; position < sequence.context; ++position) {
      const int32_t block =
          table_[static_cast<size_t>(s * table_stride_ + position / shape_.block_tokens)];
      for (int head = 0; head < shape_.kv_heads; ++head) {
        const float* from = KeyValue(s, position, head);
        std::byte* to = arena_.data() + layer_offset_ + block * strides_.block +
                        head * strides_.head + position % shape_.block_tokens * strides_.token;
        for (int i = 0; i < 2 * shape_.head_dim; ++i) {
          Store(shape_.kv_dtype, from[i], to + i * element);
        }
      }
    }
  }
}

const float* AttentionCase::Query(int token, int head) const {
  return q_.data() + (int64_t{token} * shape_.q_heads() + head) * shape_.head_dim;
}

const float* AttentionCase::KeyValue(int s, int position, int kv_head) const {
  return key_value_[static_cast<size_t>(s)].data() +
         (int64_t{position} * shape_.kv_heads + kv_head) * 2 * shape_.head_dim;
}

std::vector<float> AttentionCase::Launch(const Device& device, int row,
                                         const Guarded<std::byte>& arena,
                                         const std::vector<float>& q,
                                         const std::vector<int32_t>& table,
                                         const std::vector<int32_t>& starts,
                                         const std::vector<int32_t>& context) const {
  const Guarded<float> query(device, q, back_guard_);
  const Guarded<float> out(device, std::vector<float>(q.size(), kPoison), back_guard_);
  const Guarded<int32_t> tables(device, table, back_guard_);
  const Guarded<int32_t> start(device, starts, back_guard_), contexts(device, context, back_guard_);

  ashlar_attention args{};
  const std::vector<int64_t> shape = {starts.back(), shape_.q_heads(), shape_.head_dim};
  args.q = ToC(Tensor::Of(query.data(), DType::kF32, shape));
  args.out = ToC(Tensor::Of(out.data(), DType::kF32, shape));
  args.kv.base = arena.data() + layer_offset_;
  args.kv.block_stride = strides_.block;
  args.kv.head_stride = strides_.head;
  args.kv.token_stride = strides_.token;
  args.kv.blocks = blocks_;
  args.kv.dtype = static_cast<ashlar_dtype>(shape_.kv_dtype);
  args.kv.block_tokens = shape_.block_tokens;
  args.kv.kv_heads = shape_.kv_heads;
  args.kv.head_dim = args.kv.head_dim_v = shape_.head_dim;
  args.block_table = tables.data();
  args.table_stride = table_stride_;
  args.query_start = start.data();
  args.context = contexts.data();
  args.sequences = static_cast<int32_t>(context.size());
  for (size_t s = 0; s < context.size(); ++s) {
    args.max_query = std::max(args.max_query, starts[s + 1] - starts[s]);
    args.max_context = std::max(args.max_context, context[s]);
  }
  args.scale = scale_;
  args.window = shape_.window;
  const Status ran = device.Attention(row, args);
  if (!ran.ok()) ADD_FAILURE() << shape_.text() << ": " << Text(ran.problems());

  EXPECT_TRUE(SameBits(query.Read("q"), q)) << "attention changed q";
  (void)tables.Read("block_table");
  return out.Read("out");
}

void AttentionCase::ExpectUnchanged(const Guarded<std::byte>& arena) const {
  EXPECT_TRUE(SameBits(arena.Read("cache"), arena_)) << "attention changed the cache";
}

std::vector<float> AttentionCase::Run(const Device& device, int row) const {
  const Guarded<std::byte> arena(device, arena_, back_guard_);
  std::vector<float> out = Launch(device, row, arena, q_, table_, query_start_, context_);
  ExpectUnchanged(arena);
  return out;
}

std::vector<float> AttentionCase::RunTokensAlone(const Device& device, int row) const {
  const Guarded<std::byte> arena(device, arena_, back_guard_);
  std::vector<float> all;
  for (size_t s = 0; s < shape_.sequences.size(); ++s) {
    const auto first = table_.begin() + static_cast<int64_t>(s) * table_stride_;
    const std::vector<int32_t> table(first, first + table_stride_);
    for (int token = query_start_[s]; token < query_start_[s + 1]; ++token) {
      const float* query = Query(token, 0);
      const std::vector<float> one =
          Launch(device, row, arena, {query, query + int64_t{shape_.q_heads()} * shape_.head_dim},
                 table, {0, 1}, {context_[s] - (query_start_[s + 1] - token) + 1});
      all.insert(all.end(), one.begin(), one.end());
    }
  }
  ExpectUnchanged(arena);
  return all;
}

}  // namespace ashlar::testing
