#include "gpu/bench.h"

namespace ashlar::gpu_test {

// Norms, rotation and the write to the cache, 32 and 8 heads of 128.
void PrepareBench(const Side& side) {
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

}  // namespace ashlar::gpu_test
