// Attention of long sequences by the vendor's library, which takes tables, lengths and begins of
// those alone that it computes: they are gathered on the device, for which of a step's sequences
// are long is not known to the host.
#include <algorithm>
#include <bit>

#include "cudnn.h"
#include "gpu/attention_rows.h"
#include "gpu/platform.h"

namespace ashlar::gpu_kernels {
namespace {

constexpr int kGatherThreads = 256;
constexpr int kMostSequences = 64;  // that may be long: the library launches blocks for all

struct GatherParams {
  AttentionParams attention;
  int slots, table_blocks;         // of the gathered ones
  int q_token, out_token;          // elements from a token to the next
  int32_t *tokens, *contexts;      // [slots]; 0 where no sequence is
  int32_t *q_begins, *out_begins;  // [slots + 1]
  int32_t* tables;                 // [slots, table_blocks]
};

// Versions of the library multiply values after a sequence's last by weights of zero, up to a
// multiple of 128 tokens: those of its last block become zeros, and for blocks after it that one
// stands. No sequence has anything there yet.
GPU_DEVICE void ClearUnseen(const ashlar_kv_view& kv, int32_t block, int seen) {
  const int vectors = kv.head_dim * 2 / 16, unseen = kv.block_tokens - seen;
  for (int i = gpu::ThreadX(); i < unseen * kv.kv_heads * vectors; i += kGatherThreads) {
    const int entry = i / vectors, token = seen + entry / kv.kv_heads, head = entry % kv.kv_heads;
    char* const values = static_cast<char*>(kv.base) + block * kv.block_stride +
                         head * kv.head_stride + token * kv.token_stride + kv.head_dim * 2;
    *reinterpret_cast<gpu::Vector*>(values + i % vectors * 16) = {};
  }
}

// One block. Sequence after sequence in turn, each by all threads.
GPU_KERNEL void GPU_BOUNDS(kGatherThreads, 1) GatherKernel(const GatherParams p) {
  gpu::ReleaseNext();
  gpu::WaitForPrevious();
  const ashlar_attention& a = p.attention.args;
  int slot = 0;
  for (int s = 0; s < a.sequences && slot < p.slots; ++s) {
    const int begin = a.query_start[s], tokens = a.query_start[s + 1] - begin;
    const int context = a.context[s];
    if (tokens == 0 || context == 0) continue;  // idle
    if (p.attention.only_long && tokens * p.attention.group <= kTile) continue;
    const int last = (context - 1) / a.kv.block_tokens;
    const int32_t* const table = a.block_table + s * a.table_stride;
    for (int i = gpu::ThreadX(); i < p.table_blocks; i += kGatherThreads) {
      p.tables[slot * p.table_blocks + i] = table[i < last ? i : last];
    }
    ClearUnseen(a.kv, table[last], context - last * a.kv.block_tokens);
    if (gpu::ThreadX() == 0) {
      p.tokens[slot] = tokens;
      p.contexts[slot] = context;
      p.q_begins[slot] = begin * p.q_token;
      p.out_begins[slot] = begin * p.out_token;
    }
    ++slot;
  }
  const int end = a.query_start[a.sequences];
  for (int i = slot + gpu::ThreadX(); i <= p.slots; i += kGatherThreads) {
    if (i < p.slots) p.tokens[i] = p.contexts[i] = 0;
    p.q_begins[i] = end * p.q_token;
    p.out_begins[i] = end * p.out_token;
  }
  for (int i = slot * p.table_blocks + gpu::ThreadX(); i < p.slots * p.table_blocks;
       i += kGatherThreads) {
    p.tables[i] = 0;
  }
}

int64_t RoundUp(int64_t bytes) { return (bytes + 255) / 256 * 256; }
int64_t PowerOfTwo(int64_t least, int64_t value) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max(least, value))));
}

class CudnnPrefill final : public Prefill {
 public:
  static std::unique_ptr<Prefill> Open() {
    std::unique_ptr<CudnnPrefill> prefill(new CudnnPrefill);
    prefill->sdpa_ = OpenSdpa();
    if (prefill->sdpa_ == nullptr) return nullptr;
    return prefill;
  }

  int64_t PartsBytes() const override { return kRoomBytes; }

  bool Launch(gpu::Stream stream, const AttentionParams& p, gpu::Error* error) override {
    const ashlar_attention& a = p.args;
    if (!Fits(p)) return false;
    const SdpaShape shape = ShapeOf(p);
    if (gpu::IsCaptured(stream) && !sdpa_->Knows(shape)) return false;
    const int64_t slots = shape.sequences, workspace = sdpa_->WorkspaceBytes(shape);
    const int64_t lengths = RoundUp((slots + 1) * int64_t{sizeof(int32_t)});
    const int64_t tables = RoundUp(slots * shape.table_blocks * int64_t{sizeof(int32_t)});
    if (slots > kMostSequences || workspace < 0 || 4 * lengths + tables + workspace > kRoomBytes) {
      return false;
    }
    char* room = reinterpret_cast<char*>(p.parts);
    const auto take = [&](int64_t bytes) {
      char* taken = room;
      room += bytes;
      return reinterpret_cast<int32_t*>(taken);
    };
    GatherParams gather{};
    gather.attention = p;
    gather.slots = static_cast<int>(slots);
    gather.table_blocks = static_cast<int>(shape.table_blocks);
    gather.q_token = static_cast<int>(shape.q_token);
    gather.out_token = static_cast<int>(shape.out_token);
    gather.tokens = take(lengths);
    gather.contexts = take(lengths);
    gather.q_begins = take(lengths);
    gather.out_begins = take(lengths);
    gather.tables = take(tables);
    *error = gpu::Launch(stream, {1}, kGatherThreads, 0, GatherKernel, gather);
    if (*error != gpu::kSuccess) return true;
    SdpaCall call{};
    call.q = a.q.data;
    call.k = a.kv.base;
    call.v = static_cast<const char*>(a.kv.base) + a.kv.head_dim * 2;
    call.out = a.out.data;
    call.tables = gather.tables;
    call.tokens = gather.tokens;
    call.contexts = gather.contexts;
    call.q_begins = gather.q_begins;
    call.out_begins = gather.out_begins;
    call.scale = a.scale;
    call.workspace = room;
    return sdpa_->Run(stream, shape, call).empty();
  }

 private:
  static constexpr int64_t kRoomBytes = 16 << 20;

  static bool Fits(const AttentionParams& p) {
    const ashlar_attention& a = p.args;
    const bool sixteen = a.kv.dtype == ASHLAR_BF16 || a.kv.dtype == ASHLAR_F16;
    return sixteen && a.q.dtype == a.kv.dtype && a.out.dtype == a.kv.dtype && a.window == 0 &&
           (a.kv.head_dim == 64 || a.kv.head_dim == 128) && p.aligned && p.aligned_q &&
           p.aligned_out &&
           a.q.shape[0] * std::max(a.q.stride[0], a.out.stride[0]) / 2 <= INT32_MAX;
  }

  // Rounded up, so that few plans are made.
  static SdpaShape ShapeOf(const AttentionParams& p) {
    const ashlar_attention& a = p.args;
    const int64_t least = p.only_long ? kTile / p.group + 1 : 1;  // tokens of a sequence
    const int64_t most = std::min<int64_t>(a.sequences, a.q.shape[0] / least);
    const int64_t blocks = (a.max_context + a.kv.block_tokens - 1) / a.kv.block_tokens;
    SdpaShape s{};
    s.type = a.kv.dtype;
    s.sequences = PowerOfTwo(1, most);
    s.most_tokens = PowerOfTwo(128, a.max_query);
    s.q_heads = a.q.shape[1];
    s.kv_heads = a.kv.kv_heads;
    s.head_dim = a.kv.head_dim;
    s.table_blocks = PowerOfTwo(128 / std::min(a.kv.block_tokens, 128), blocks);
    s.block_tokens = a.kv.block_tokens;
    s.cache_blocks = a.kv.blocks;
    s.q_token = a.q.stride[0] / 2;
    s.out_token = a.out.stride[0] / 2;
    s.cache_block = a.kv.block_stride / 2;
    s.cache_head = a.kv.head_stride / 2;
    s.cache_token = a.kv.token_stride / 2;
    return s;
  }

  std::unique_ptr<Sdpa> sdpa_;
};

}  // namespace

std::unique_ptr<Prefill> OpenVendorPrefill() { return CudnnPrefill::Open(); }

}  // namespace ashlar::gpu_kernels
