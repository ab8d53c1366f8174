#include "gpu/bench.h"

namespace ashlar::gpu_test {
namespace {

// Norms, rotation and the write to the cache, 32 and 8 heads of 128.
void QkvBench(const Side& side) {
  constexpr int kHeads = 32, kKvHeads = 8, kDim = 128, kBlock = 16;
  constexpr int64_t kEntry = 2 * kDim * 2;
  for (int64_t tokens : {1, 8, 64, 256, 8192}) {
    const int64_t blocks = (tokens + kBlock - 1) / kBlock;
    const int64_t cache_bytes = blocks * kBlock * kKvHeads * kEntry;
    const int64_t row = int64_t{kHeads + 2 * kKvHeads} * kDim;
    const int copies =
        static_cast<int>(std::clamp<int64_t>((int64_t{1} << 29) / (row * tokens), 2, 64));
    const Memory qkv(side, copies * tokens * row * 2), q(side, copies * tokens * row * 2);
    const Memory cache(side, copies * cache_bytes);
    qkv.Fill(Normals(1 << 20), copies * tokens * row * 2);
    const Array<float> norm(side, std::vector<float>(128, 1)),
        freq(side, std::vector<float>(64, 0.01f));
    const Array<int32_t> positions(side, std::vector<int32_t>(size_t(tokens), 1000));
    std::vector<int64_t> all(static_cast<size_t>(tokens));
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
    const Array<int64_t> slots(side, all);
    const Time time = Measure(side, std::max(16, copies), [&](int i) {
      const int64_t copy = i % copies;
      ashlar_qkv_prepare a{};
      a.qkv = Dense(qkv.as<char>() + copy * tokens * row * 2, ASHLAR_BF16, {tokens, row});
      a.q_out = Dense(q.as<char>() + copy * tokens * row * 2, ASHLAR_BF16, {tokens, kHeads, kDim});
      a.q_norm = a.k_norm = Dense(norm.data(), ASHLAR_F32, {128});
      a.eps = 1e-6f;
      a.positions = positions.data();
      a.inv_freq = freq.data();
      a.rotary_dim = 128;
      a.rope_scale = 1;
      a.kv.base = cache.as<char>() + copy * cache_bytes;
      a.kv.token_stride = kEntry;
      a.kv.head_stride = a.kv.token_stride * kBlock;
      a.kv.block_stride = a.kv.head_stride * kKvHeads;
      a.kv.blocks = blocks;
      a.kv.dtype = ASHLAR_BF16;
      a.kv.block_tokens = kBlock;
      a.kv.kv_heads = kKvHeads;
      a.kv.head_dim = a.kv.head_dim_v = kDim;
      a.slots = slots.data();
      side.Must(side.table().qkv_prepare(side.device(), side.stream(), &a));
    });
    char what[64];
    std::snprintf(what, sizeof what, "qkv_prepare bf16 32/8 d128, %d tokens", int(tokens));
    Print(what, time, 2.0 * double(tokens * row * 2), 0);
  }
}

// Of the 8B shape: rows of 4,096, and of 14,336 behind the gate.
void RowsBench(const Side& side) {
  constexpr int64_t kHidden = 4096, kWidth = 14336;
  for (int64_t tokens : {1, 2048, 8192}) {
    const int copies = static_cast<int>(
        std::clamp<int64_t>((int64_t{1} << 30) / (2 * kWidth * tokens * 2), 2, 64));
    const Memory in(side, copies * tokens * 2 * kWidth * 2),
        out(side, copies * tokens * kWidth * 2);
    in.Fill(Normals(1 << 20), copies * tokens * 2 * kWidth * 2);
    const Array<float> weight(side, std::vector<float>(kHidden, 1));
    const auto rows = [&](const Memory& memory, int64_t at, int64_t width) {
      return Dense(memory.as<char>() + at * tokens * width * 2, ASHLAR_BF16, {tokens, width});
    };
    const auto print = [&](const char* name, double values, const std::function<void(int)>& call) {
      char what[64];
      std::snprintf(what, sizeof what, "%s bf16, %d tokens", name, int(tokens));
      Print(what, Measure(side, std::max(16, copies), call), values * double(tokens) * 2, 0);
    };
    const ashlar_plugin& table = side.table();
    const ashlar_tensor ones = Dense(weight.data(), ASHLAR_F32, {kHidden});
    print("rms_norm 4096", 2 * kHidden, [&](int i) {
      const int at = i % copies;
      side.Must(table.rms_norm(side.device(), side.stream(), rows(out, at, kHidden),
                               rows(in, at, kHidden), ones, 1e-6f));
    });
    print("gated_activation 14336", 3 * kWidth, [&](int i) {
      const int at = i % copies;
      side.Must(table.gated_activation(side.device(), side.stream(), rows(out, at, kWidth),
                                       rows(in, at, 2 * kWidth), ASHLAR_SILU));
    });
  }
}

}  // namespace

void PrepareBench(const Side& side) {
  QkvBench(side);
  RowsBench(side);
}

}  // namespace ashlar::gpu_test
