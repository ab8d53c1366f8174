// Launches of the Hopper attention kernel: tensor maps of the query and of the cache, which depend
// on addresses and strides alone, so a captured step keeps them.
#include <algorithm>
#include <memory>
#include <numeric>

#include "gpu/attention_rows.h"
#include "gpu/platform.h"
#include "hopper_launch.h"
#include "hopper_map.h"

namespace ashlar::gpu_kernels {
namespace {

using hopper::Encode, hopper::Extents, hopper::MakeMap;

// Columns in rows of 128 bytes, heads, tokens, and which 64 columns.
bool MapQuery(Encode encode, const AttentionParams& p, int tile_tokens, CUtensorMap* map) {
  const ashlar_tensor& q = p.args.q;
  const auto halves = static_cast<cuuint64_t>(p.args.kv.head_dim / 64);
  Extents e{4,
            {64, cuuint64_t(q.shape[1]), cuuint64_t(q.shape[0]), halves},
            {cuuint64_t(q.stride[1]), cuuint64_t(q.stride[0]), 128},
            {64, cuuint32_t(p.group), cuuint32_t(tile_tokens), 1}};
  return MakeMap(encode, q.dtype, q.data, e, map);
}

// The cache: columns in rows of 128 bytes, 8 tokens, which 64 columns of K and then V, groups of 8
// tokens in a block, and units, of which blocks and heads are whole numbers apart.
bool MapCache(Encode encode, const ashlar_kv_view& kv, int64_t unit, int box_tokens,
              CUtensorMap* map) {
  const auto halves = static_cast<cuuint32_t>(kv.head_dim / 64);
  const int64_t last = (kv.blocks - 1) * kv.block_stride + (kv.kv_heads - 1) * kv.head_stride;
  Extents e{5,
            {64, 8, 2 * halves, cuuint64_t(kv.block_tokens / 8), cuuint64_t(last / unit + 1)},
            {cuuint64_t(kv.token_stride), 128, cuuint64_t(8 * kv.token_stride), cuuint64_t(unit)},
            {64, 8, halves, cuuint32_t(box_tokens / 8), 1}};
  return e.size[4] <= INT32_MAX && MakeMap(encode, kv.dtype, kv.base, e, map);
}

bool Aligned(const ashlar_tensor& t) {
  return (reinterpret_cast<uintptr_t>(t.data) | static_cast<uintptr_t>(t.stride[0])) % 16 == 0;
}

// What the copy engine and 16-byte stores ask of a call.
bool Fits(const AttentionParams& p) {
  const ashlar_kv_view& kv = p.args.kv;
  return hopper::HasHeadDim(kv.head_dim) && p.args.q.dtype == kv.dtype &&
         p.args.out.dtype == kv.dtype && p.group <= hopper::kQueryRows && p.scale_log2 > 0 &&
         kv.block_tokens % 8 == 0 && p.aligned && Aligned(p.args.q) && Aligned(p.args.out);
}

hopper::AttentionParams KernelParams(const AttentionParams& p, int64_t unit, int* taken) {
  const ashlar_kv_view& kv = p.args.kv;
  hopper::AttentionParams h{};
  h.block_table = p.args.block_table;
  h.query_start = p.args.query_start;
  h.context = p.args.context;
  h.table_stride = p.args.table_stride;
  h.out = static_cast<char*>(p.args.out.data);
  h.out_row_bytes = p.args.out.stride[0];
  h.sequences = p.args.sequences;
  h.kv_heads = kv.kv_heads;
  h.group = p.group;
  h.short_rows = p.only_long ? kTile : 0;
  h.tile_tokens = hopper::kQueryRows / p.group;
  h.block_tokens = kv.block_tokens;
  h.box_tokens = std::gcd(kv.block_tokens, hopper::TileKeys(kv.head_dim));
  h.block_units = static_cast<int>(kv.block_stride / unit);
  h.head_units = static_cast<int>(kv.head_stride / unit);
  h.entry_bytes = 2 * kv.head_dim * 2;
  h.window = p.args.window;
  h.scale_log2 = p.scale_log2;
  h.taken = taken;
  h.tokens = static_cast<int>(p.args.q.shape[0]);
  h.q_heads = static_cast<int>(p.args.q.shape[1]);
  return h;
}

constexpr int64_t kPartsBytes = 16 << 20;

// Enough parts that the tiles of the longest prompt fill the device, as far as its keys and the
// memory for parts go.
int MostParts(const AttentionParams& p, int tile_tokens, int multiprocessors) {
  const int64_t tiles =
      (p.args.max_query + tile_tokens - 1) / tile_tokens * int64_t{p.args.kv.kv_heads};
  const int64_t part_bytes =
      p.args.q.shape[0] * p.args.q.shape[1] * (p.args.kv.head_dim + 2) * int64_t{sizeof(float)};
  const int64_t most = std::min({multiprocessors / std::max<int64_t>(tiles, 1),
                                 int64_t{p.args.max_context / hopper::kPartKeys},
                                 kPartsBytes / part_bytes, int64_t{16}});
  return static_cast<int>(std::max<int64_t>(most, 1));
}

// Launches follow one another: they share one pair of counters.
class HopperPrefill final : public Prefill {
 public:
  static std::unique_ptr<Prefill> Open(int device) {
    if (!hopper::RunsOn(device)) return nullptr;
    std::unique_ptr<HopperPrefill> prefill(new HopperPrefill);
    void* taken = nullptr;
    prefill->encode_ = hopper::FindEncode();
    if (prefill->encode_ == nullptr) return nullptr;
    if (gpu::Alloc(&taken, 2 * sizeof(int)) != gpu::kSuccess) return nullptr;
    prefill->taken_ = static_cast<int*>(taken);
    gpu::Facts facts;
    // A stream of the caller's does not wait for the zeros by itself.
    if (gpu::ReadFacts(device, &facts) != gpu::kSuccess ||
        gpu::Zero(taken, 2 * sizeof(int), nullptr) != gpu::kSuccess ||
        gpu::Sync(nullptr) != gpu::kSuccess) {
      return nullptr;
    }
    prefill->multiprocessors_ = facts.multiprocessors;
    return prefill;
  }

  ~HopperPrefill() override { (void)gpu::Free(taken_); }

  int64_t PartsBytes() const override { return kPartsBytes; }

  bool Launch(gpu::Stream stream, const AttentionParams& p, gpu::Error* error) override {
    const ashlar_kv_view& kv = p.args.kv;
    const int64_t unit = std::gcd(kv.block_stride, kv.head_stride);
    if (!Fits(p) || unit == 0) return false;
    hopper::AttentionParams params = KernelParams(p, unit, taken_);
    params.most_parts = MostParts(p, params.tile_tokens, multiprocessors_);
    params.parts = p.parts;
    hopper::AttentionLaunch launch;
    launch.stream = stream;
    launch.head_dim = kv.head_dim;
    if (!MapQuery(encode_, p, params.tile_tokens, &launch.q_map) ||
        !MapCache(encode_, kv, unit, params.box_tokens, &launch.kv_map)) {
      return false;
    }
    const int64_t tiles = (p.args.q.shape[0] / params.tile_tokens + p.args.sequences) *
                          int64_t{kv.kv_heads} * params.most_parts;
    launch.blocks = static_cast<unsigned>(std::min<int64_t>(tiles, multiprocessors_));
    *error = kv.dtype == ASHLAR_BF16 ? hopper::LaunchBF16(launch, params)
                                     : hopper::LaunchF16(launch, params);
    if (*error == gpu::kSuccess && params.most_parts > 1) {
      *error = hopper::LaunchCombine(launch, kv.dtype, params);
    }
    return true;
  }

 private:
  Encode encode_ = nullptr;
  int multiprocessors_ = 0;
  int* taken_ = nullptr;  // see hopper::AttentionParams
};

}  // namespace

std::unique_ptr<Prefill> OpenPrefill(int device) { return HopperPrefill::Open(device); }

}  // namespace ashlar::gpu_kernels
