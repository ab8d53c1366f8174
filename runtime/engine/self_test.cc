#include "engine/self_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "engine/sampler.h"
#include "plan/layout.h"

namespace ashlar {
namespace {

constexpr uint64_t kSeed = 20;

// Both sides read the same bytes of K and V, so only the arithmetic differs. A kernel may round
// queries and weights to the KV dtype before it multiplies: 2^-24, 2^-11 or 2^-8 each, and a
// softmax over scores of unit variance lets such errors grow a few times. Sums are in f32 at least.
// A wrong block, head, mask or scale is an error near 1.
double ToleranceOf(DType kv_dtype) {
  switch (kv_dtype) {
    case DType::kF32:
      return 1e-4;
    case DType::kF16:
      return 5e-3;
    default:
      return 3e-2;
  }
}

// Evenly spread with variance 1.
float Value(uint64_t index) {
  return static_cast<float>((UniformAt(kSeed, index) * 2 - 1) * 1.7320508075688772);
}

uint16_t ToBF16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}

// For values within the normal range of f16, which is all that is used here.
uint16_t ToF16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t sign = (bits >> 16) & 0x8000u;
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude < 0x38800000u) return static_cast<uint16_t>(sign);  // subnormal: zero will do
  magnitude += 0xfffu + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u) >> 13));
}

float FromHalf(DType dtype, uint16_t half) {
  if (dtype == DType::kBF16) return std::bit_cast<float>(uint32_t{half} << 16);
  uint32_t sign = uint32_t{half & 0x8000u} << 16, magnitude = half & 0x7fffu;
  return std::bit_cast<float>(sign | (magnitude == 0 ? 0 : (magnitude << 13) + 0x38000000u));
}

void Store(std::byte* to, DType dtype, float value) {
  if (dtype == DType::kF32) {
    std::memcpy(to, &value, sizeof value);
    return;
  }
  uint16_t half = dtype == DType::kBF16 ? ToBF16(value) : ToF16(value);
  std::memcpy(to, &half, sizeof half);
}

float Load(const std::byte* from, DType dtype) {
  if (dtype == DType::kF32) {
    float value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  uint16_t half;
  std::memcpy(&half, from, sizeof half);
  return FromHalf(dtype, half);
}

struct Query {
  int64_t tokens = 0, context = 0;
};

// Lengths around the edges of kernel blocks and of the window.
std::vector<Query> DecodeShapes(int64_t block, int64_t window) {
  std::vector<Query> shapes;
  for (int64_t context : {int64_t{1}, block - 1, block, block + 1, 3 * block + 5}) {
    if (context > 0) shapes.push_back({1, context});
  }
  if (window > 0) {
    for (int64_t context : {window, window + 1, window + block + 3}) shapes.push_back({1, context});
  }
  return shapes;
}

std::vector<Query> PrefillShapes(int64_t block, int64_t window) {
  std::vector<Query> shapes = {
      {5, 5}, {block + 3, block + 3}, {7, 2 * block + 8}, {1, block + 2}, {17, 3 * block + 17}};
  if (window > 0) shapes.push_back({11, window + 14});
  return shapes;
}

// One batch in host memory: the cache of two layers in the plan's layout, of which the second is
// read; everything that no query sees holds a large number.
class Case {
 public:
  Case(const Plan& plan, const KvGroup& group, const AttentionGroup& attention,
       std::vector<Query> queries, DType q_dtype)
      : group_(group), layer_(attention.layer), queries_(std::move(queries)), q_dtype_(q_dtype) {
    LayOutTables();
    LayOutCache(plan.layout);
    FillQueries();
  }

  // The answer of one device, as floats [tokens, heads, head_dim_v].
  Result<std::vector<float>> Run(const Device& device, int row, DType q_dtype) const;

 private:
  void LayOutTables();
  void LayOutCache(KvLayout layout);
  void FillQueries();
  void FillEntry(std::byte* entry, bool seen, uint64_t index) const;

  const KvGroup& group_;
  const LayerSpec& layer_;
  std::vector<Query> queries_;
  DType q_dtype_;
  int64_t tokens_ = 0, kernel_blocks_ = 0, table_stride_ = 0;
  std::vector<int32_t> query_start_, context_, table_;
  std::vector<std::byte> cache_;
  int64_t layer_offset_ = 0;
  ashlar_kv_view view_{};
  std::vector<float> q_;  // exactly what q_dtype holds
};

// Manager blocks in a scattered order, the null block 0 behind the window.
void Case::LayOutTables() {
  int64_t manager = group_.block_tokens, kernel = group_.kernel_block_tokens;
  int64_t split = manager / kernel, blocks = 0;
  query_start_.push_back(0);
  for (const Query& query : queries_) {
    tokens_ += query.tokens;
    query_start_.push_back(static_cast<int32_t>(tokens_));
    context_.push_back(static_cast<int32_t>(query.context));
    table_stride_ = std::max(table_stride_, CeilDiv(query.context, manager) * split);
    blocks += CeilDiv(query.context, manager);
  }
  // A multiplier without a common factor visits each block once.
  int64_t stride = blocks / 2 + 1;
  while (std::gcd(stride, blocks) != 1) ++stride;
  table_.assign(queries_.size() * static_cast<size_t>(table_stride_), 0);
  int64_t next = 0;
  for (size_t s = 0; s < queries_.size(); ++s) {
    int64_t first_seen = queries_[s].context - queries_[s].tokens - layer_.window + 1;
    for (int64_t i = 0; i < CeilDiv(queries_[s].context, manager); ++i) {
      int64_t block = 1 + next++ * stride % blocks;
      if (layer_.window > 0 && (i + 1) * manager <= first_seen) block = 0;
      for (int64_t part = 0; part < split; ++part) {
        table_[s * static_cast<size_t>(table_stride_) + static_cast<size_t>(i * split + part)] =
            static_cast<int32_t>(block * split + part);
      }
    }
  }
  kernel_blocks_ = (blocks + 1) * split;
}

void Case::LayOutCache(KvLayout layout) {
  KvExtents extents = {2, kernel_blocks_, group_.head_slots, group_.kernel_block_tokens,
                       group_.content_bytes};
  std::optional<KvStrides> strides = StridesOf(layout, extents);
  Check(strides.has_value(), "a small cache has strides in every layout");
  cache_.resize(static_cast<size_t>(*CheckedProduct(extents)));
  layer_offset_ = (*strides)[kDimL];
  view_.block_stride = (*strides)[kDimB];
  view_.head_stride = (*strides)[kDimH];
  view_.token_stride = (*strides)[kDimN];
  view_.blocks = kernel_blocks_;
  view_.dtype = static_cast<ashlar_dtype>(group_.dtype);
  view_.block_tokens = group_.kernel_block_tokens;
  view_.kv_heads = layer_.kv_heads;
  view_.head_dim = layer_.head_dim;
  view_.head_dim_v = layer_.head_dim_v;

  int64_t kernel = group_.kernel_block_tokens;
  std::vector<bool> seen(static_cast<size_t>(kernel_blocks_ * kernel));
  for (size_t s = 0; s < queries_.size(); ++s) {
    int64_t first = queries_[s].context - queries_[s].tokens - layer_.window + 1;
    for (int64_t p = layer_.window > 0 ? std::max<int64_t>(first, 0) : 0; p < queries_[s].context;
         ++p) {
      int64_t block =
          table_[s * static_cast<size_t>(table_stride_) + static_cast<size_t>(p / kernel)];
      seen[static_cast<size_t>(block * kernel + p % kernel)] = true;
    }
  }
  uint64_t index = 0;
  for (int64_t l = 0; l < 2; ++l) {
    for (int64_t b = 0; b < kernel_blocks_; ++b) {
      for (int64_t h = 0; h < layer_.kv_heads; ++h) {
        for (int64_t n = 0; n < kernel; ++n) {
          std::byte* entry = cache_.data() + l * layer_offset_ + b * view_.block_stride +
                             h * view_.head_stride + n * view_.token_stride;
          FillEntry(entry, l == 1 && seen[static_cast<size_t>(b * kernel + n)], index++);
        }
      }
    }
  }
}

void Case::FillEntry(std::byte* entry, bool seen, uint64_t index) const {
  int bytes = Info(group_.dtype).bytes;
  int64_t values = layer_.head_dim + layer_.head_dim_v;
  for (int64_t i = 0; i < values; ++i) {
    uint64_t at = (index << 16) + static_cast<uint64_t>(i);
    Store(entry + i * bytes, group_.dtype, seen ? Value(at) : 10'000.0f);
  }
}

// Scores get unit variance whatever the layer's scale.
void Case::FillQueries() {
  q_.resize(static_cast<size_t>(tokens_ * layer_.heads * layer_.head_dim));
  float spread = 1.0f / (layer_.scale * std::sqrt(static_cast<float>(layer_.head_dim)));
  for (size_t i = 0; i < q_.size(); ++i) {
    std::byte rounded[4];
    Store(rounded, q_dtype_, Value((uint64_t{1} << 60) + i) * spread);
    q_[i] = Load(rounded, q_dtype_);
  }
}

// Device memory with these bytes.
Result<Buffer> Upload(const Device& device, std::span<const std::byte> bytes) {
  auto buffer = device.Alloc(static_cast<int64_t>(bytes.size()));
  if (!buffer.ok()) return buffer;
  if (auto copied = device.CopyIn(buffer->data(), bytes); !copied.ok()) return copied.problems();
  return buffer;
}

Result<std::vector<float>> Case::Run(const Device& device, int row, DType q_dtype) const {
  int element = Info(q_dtype).bytes;
  std::vector<std::byte> q_bytes(q_.size() * static_cast<size_t>(element));
  for (size_t i = 0; i < q_.size(); ++i) {
    Store(q_bytes.data() + i * static_cast<size_t>(element), q_dtype, q_[i]);
  }
  std::vector<std::byte> out_bytes(
      static_cast<size_t>(tokens_ * layer_.heads * layer_.head_dim_v * element));

  auto cache = Upload(device, cache_);
  auto q = Upload(device, q_bytes);
  auto out = Upload(device, out_bytes);
  auto start = Upload(device, std::as_bytes(std::span(query_start_)));
  auto context = Upload(device, std::as_bytes(std::span(context_)));
  auto table = Upload(device, std::as_bytes(std::span(table_)));
  for (auto* buffer : {&cache, &q, &out, &start, &context, &table}) {
    if (!buffer->ok()) return buffer->problems();
  }
  ashlar_attention args{};
  args.q = ToC(Tensor::Of(q->data(), q_dtype, {tokens_, layer_.heads, layer_.head_dim}));
  args.out = ToC(Tensor::Of(out->data(), q_dtype, {tokens_, layer_.heads, layer_.head_dim_v}));
  args.kv = view_;
  args.kv.base = static_cast<std::byte*>(cache->data()) + layer_offset_;
  args.block_table = static_cast<const int32_t*>(table->data());
  args.table_stride = table_stride_;
  args.query_start = static_cast<const int32_t*>(start->data());
  args.context = static_cast<const int32_t*>(context->data());
  args.sequences = static_cast<int32_t>(queries_.size());
  for (const Query& query : queries_) {
    args.max_query = std::max(args.max_query, static_cast<int32_t>(query.tokens));
    args.max_context = std::max(args.max_context, static_cast<int32_t>(query.context));
  }
  args.scale = layer_.scale;
  args.window = layer_.window;
  if (auto ran = device.Attention(row, args); !ran.ok()) return ran.problems();
  if (auto copied = device.CopyOut(out_bytes, out->data()); !copied.ok()) return copied.problems();
  if (auto done = device.Sync(); !done.ok()) return done.problems();

  std::vector<float> answer(out_bytes.size() / static_cast<size_t>(element));
  for (size_t i = 0; i < answer.size(); ++i) {
    answer[i] = Load(out_bytes.data() + i * static_cast<size_t>(element), q_dtype);
  }
  return answer;
}

// NaN when either side is not finite anywhere.
double ErrorOf(const std::vector<float>& out, const std::vector<float>& expected) {
  if (!AllFinite(out) || !AllFinite(expected)) return std::numeric_limits<double>::quiet_NaN();
  double difference = 0, largest = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    difference = std::max(difference, std::abs(double{out[i]} - expected[i]));
    largest = std::max(largest, std::abs(double{expected[i]}));
  }
  return difference / largest;
}

// The first of the dtypes that a query may have, the widest first.
std::optional<DType> QueryDType(const AttentionRow& row) {
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    if (std::ranges::find(row.dtypes, dtype) != row.dtypes.end()) return dtype;
  }
  return std::nullopt;
}

int ReferenceRow(const Device& reference, KvKind kind) {
  const auto& rows = reference.plugin().rows();
  for (size_t i = 0; i < rows.size(); ++i) {
    if (std::ranges::find(rows[i].kinds, kind) != rows[i].kinds.end()) return static_cast<int>(i);
  }
  return -1;
}

Problem CannotTest(const SelfTestResult& result, std::string why) {
  return {fmt::format("selfTest: group {} attn {}", result.group, result.attn), std::move(why),
          "a row with a reference to compare it with", "report this: the row cannot be tested"};
}

Status TestOne(const Plan& plan, const KvGroup& group, const AttentionGroup& attention,
               const Device& device, const Device& reference, SelfTestResult& result) {
  int row = device.plugin().RowIndex(attention.row);
  if (row < 0) return CannotTest(result, "the plugin has no row " + attention.row);
  std::optional<DType> q_dtype = QueryDType(device.plugin().rows()[static_cast<size_t>(row)]);
  if (!q_dtype) return CannotTest(result, attention.row + " takes no float queries");
  int truth = ReferenceRow(reference, group.kind);
  if (truth < 0) return CannotTest(result, fmt::format("no reference for {}", Name(group.kind)));

  int64_t launches = device.RowLaunches(row);
  int64_t block = group.kernel_block_tokens, window = attention.layer.window;
  for (const auto& queries : {DecodeShapes(block, window), PrefillShapes(block, window)}) {
    Case problem(plan, group, attention, queries, *q_dtype);
    auto out = problem.Run(device, row, *q_dtype);
    if (!out.ok()) return out.problems();
    auto expected = problem.Run(reference, truth, DType::kF32);
    if (!expected.ok()) return expected.problems();
    double error = ErrorOf(*out, *expected);
    if (!(error <= result.error)) result.error = error;
    if (std::isnan(error)) return Done{};
  }
  if (device.RowLaunches(row) < launches + 2) {
    return CannotTest(result, fmt::format("row {} was not the one that ran", attention.row));
  }
  return Done{};
}

}  // namespace

Result<std::vector<SelfTestResult>> RunSelfTest(const Plan& plan, const Device& device,
                                                const Device& reference) {
  std::vector<SelfTestResult> results;
  for (const KvGroup& group : plan.groups) {
    for (const AttentionGroup& attention : group.attention) {
      SelfTestResult result{group.name, attention.index, attention.row, 0,
                            ToleranceOf(group.dtype)};
      auto tested = TestOne(plan, group, attention, device, reference, result);
      if (!tested.ok()) return tested.problems();
      results.push_back(std::move(result));
    }
  }
  return results;
}

}  // namespace ashlar
