#include "engine/self_test_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/checked.h"
#include "base/float8.h"
#include "base/half.h"
#include "engine/sampler.h"
#include "plan/layout.h"

namespace ashlar {
namespace {

constexpr uint64_t kSeed = 20;

// Evenly spread with variance 1.
float Value(uint64_t index) {
  return static_cast<float>((UniformAt(kSeed, index) * 2 - 1) * 1.7320508075688772);
}

void Store(std::byte* to, DType dtype, float value) {
  if (dtype == DType::kF32) {
    std::memcpy(to, &value, sizeof value);
    return;
  }
  if (dtype == DType::kF8E4M3) {
    *to = std::byte{FloatToF8E4M3(value)};
    return;
  }
  uint16_t half = dtype == DType::kBF16 ? FloatToBFloat16(value) : FloatToHalf(value);
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
  return dtype == DType::kBF16 ? BFloat16ToFloat(half) : HalfToFloat(half);
}

// Device memory with these bytes.
Result<Buffer> Upload(const Device& device, std::span<const std::byte> bytes) {
  auto buffer = device.Alloc(static_cast<int64_t>(bytes.size()));
  if (!buffer.ok()) return buffer;
  if (auto copied = device.CopyIn(buffer->data(), bytes); !copied.ok()) return copied.problems();
  return buffer;
}

}  // namespace

SelfTestCase::SelfTestCase(const Plan& plan, const KvGroup& group, const AttentionGroup& attention,
                           std::vector<SelfTestQuery> queries, DType q_dtype)
    : group_(group), layer_(attention.layer), queries_(std::move(queries)) {
  LayOutTables();
  LayOutCache(plan.layout);
  FillCache();
  FillQueries(q_dtype);
}

// Manager blocks in a scattered order, the null block 0 behind the window.
void SelfTestCase::LayOutTables() {
  int64_t manager = group_.block_tokens, kernel = group_.kernel_block_tokens;
  int64_t split = manager / kernel, blocks = 0;
  query_start_.push_back(0);
  for (const SelfTestQuery& query : queries_) {
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

void SelfTestCase::LayOutCache(KvLayout layout) {
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
}

// By kernel block and token within it.
std::vector<bool> SelfTestCase::SeenTokens() const {
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
  return seen;
}

void SelfTestCase::FillCache() {
  const int64_t kernel = group_.kernel_block_tokens;
  const std::vector<bool> seen = SeenTokens();
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

void SelfTestCase::FillEntry(std::byte* entry, bool seen, uint64_t index) const {
  int bytes = Info(group_.dtype).bytes;
  int64_t values = layer_.head_dim + layer_.head_dim_v;
  for (int64_t i = 0; i < values; ++i) {
    uint64_t at = (index << 16) + static_cast<uint64_t>(i);
    Store(entry + i * bytes, group_.dtype, seen ? Value(at) : 10'000.0f);
  }
}

// Scores get unit variance whatever the layer's scale.
void SelfTestCase::FillQueries(DType q_dtype) {
  q_.resize(static_cast<size_t>(tokens_ * layer_.heads * layer_.head_dim));
  float spread = 1.0f / (layer_.scale * std::sqrt(static_cast<float>(layer_.head_dim)));
  for (size_t i = 0; i < q_.size(); ++i) {
    std::byte rounded[4];
    Store(rounded, q_dtype, Value((uint64_t{1} << 60) + i) * spread);
    q_[i] = Load(rounded, q_dtype);
  }
}

Result<std::vector<float>> SelfTestCase::Run(const Device& device, int row, DType q_dtype) const {
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
  for (const SelfTestQuery& query : queries_) {
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

}  // namespace ashlar
