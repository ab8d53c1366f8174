#include "conformance/qkv_case.h"

#include <fmt/format.h>

#include <cmath>

namespace ashlar::testing {
namespace {

constexpr int kLayers = 2;

}  // namespace

std::string QkvShape::text() const {
  return fmt::format("{} kv {} block {} head {} q {} kv {} tokens {} rotary {} {} scale {}{}{}",
                     Name(layout), Info(kv_dtype).name, block_tokens, head_dim, q_heads, kv_heads,
                     tokens, rotary_dim, style == ASHLAR_ROPE_HALF ? "half" : "interleaved",
                     rope_scale, q_norm ? " q_norm" : "", k_norm ? " k_norm" : "");
}

QkvCase::QkvCase(const QkvShape& shape, Random& random)
    : shape_(shape), back_guard_(random.Chance(0.5)) {
  qkv_ = random.Normals(shape.tokens * row());
  if (shape.q_norm) q_norm_ = random.Normals(shape.head_dim);
  if (shape.k_norm) k_norm_ = random.Normals(shape.head_dim);
  const double theta = random.Pick<double>({1e4, 5e5, 1e6});
  for (int i = 0; i < shape.rotary_dim / 2; ++i) {
    inv_freq_.push_back(static_cast<float>(std::pow(theta, -2.0 * i / shape.rotary_dim)));
  }
  const int longest = random.Chance(0.5) ? 100 : 30000;
  blocks_ = shape.tokens / shape.block_tokens + 3;
  std::vector<int64_t> slots;
  for (int64_t slot = 0; slot < int64_t{blocks_} * shape.block_tokens; ++slot) {
    slots.push_back(slot);
  }
  random.Shuffle(slots);
  for (int token = 0; token < shape.tokens; ++token) {
    positions_.push_back(static_cast<int32_t>(random.Int(0, longest)));
    slots_.push_back(random.Chance(0.1) ? -1 : slots[static_cast<size_t>(token)]);
  }
  strides_ = StridesOf(shape.layout, {kLayers, blocks_, shape.kv_heads, shape.block_tokens,
                                      2 * shape.head_dim * Info(shape.kv_dtype).bytes});
  layer_offset_ = random.Int(0, kLayers - 1) * strides_.layer;
  cache_.resize(static_cast<size_t>(strides_.total_bytes));
  for (std::byte& byte : cache_) byte = static_cast<std::byte>(random.Int(0, 255));
}

int64_t QkvCase::EntryAt(int token, int kv_head) const {
  const int64_t slot = slots_[static_cast<size_t>(token)];
  if (slot < 0) return -1;
  return layer_offset_ + slot / shape_.block_tokens * strides_.block + kv_head * strides_.head +
         slot % shape_.block_tokens * strides_.token;
}

QkvResult QkvCase::Launch(const Device& device, int first, int tokens) const {
  const std::vector<float> input(qkv_.begin() + first * row(),
                                 qkv_.begin() + (first + tokens) * row());
  const int64_t q_size = int64_t{tokens} * shape_.q_heads * shape_.head_dim;
  const Guarded<float> qkv(device, input, back_guard_);
  const Guarded<float> q(device, std::vector<float>(static_cast<size_t>(q_size), kPoison),
                         back_guard_);
  const Guarded<float> q_norm(device, q_norm_, back_guard_), k_norm(device, k_norm_, back_guard_);
  const Guarded<float> inv_freq(device, inv_freq_, back_guard_);
  const Guarded<int32_t> positions(
      device, {positions_.begin() + first, positions_.begin() + first + tokens}, back_guard_);
  const Guarded<int64_t> slots(device, {slots_.begin() + first, slots_.begin() + first + tokens},
                               back_guard_);
  const Guarded<std::byte> cache(device, cache_, back_guard_);

  ashlar_qkv_prepare args{};
  args.qkv = ToC(Tensor::Of(qkv.data(), DType::kF32, {tokens, row()}));
  args.q_out = ToC(Tensor::Of(q.data(), DType::kF32, {tokens, shape_.q_heads, shape_.head_dim}));
  if (shape_.q_norm) args.q_norm = ToC(Tensor::Of(q_norm.data(), DType::kF32, {shape_.head_dim}));
  if (shape_.k_norm) args.k_norm = ToC(Tensor::Of(k_norm.data(), DType::kF32, {shape_.head_dim}));
  args.eps = kEps;
  args.positions = positions.data();
  args.inv_freq = shape_.rotary_dim > 0 ? inv_freq.data() : nullptr;
  args.rotary_dim = shape_.rotary_dim;
  args.rope_scale = shape_.rope_scale;
  args.rope_style = shape_.style;
  args.kv.base = cache.data() + layer_offset_;
  args.kv.block_stride = strides_.block;
  args.kv.head_stride = strides_.head;
  args.kv.token_stride = strides_.token;
  args.kv.blocks = blocks_;
  args.kv.dtype = static_cast<ashlar_dtype>(shape_.kv_dtype);
  args.kv.block_tokens = shape_.block_tokens;
  args.kv.kv_heads = shape_.kv_heads;
  args.kv.head_dim = args.kv.head_dim_v = shape_.head_dim;
  args.slots = slots.data();
  const Status ran = device.QkvPrepare(args);
  if (!ran.ok()) ADD_FAILURE() << shape_.text() << ": " << Text(ran.problems());
  EXPECT_TRUE(SameBits(qkv.Read("qkv"), input)) << "qkv_prepare changed its input";
  return {q.Read("q_out"), cache.Read("cache")};
}

}  // namespace ashlar::testing
