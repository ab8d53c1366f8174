// What one layer caches, as arithmetic: page size, and blocks that one request holds. Knows kinds
// only through one table.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/dtype.h"
#include "device/row.h"
#include "model/config.h"

namespace ashlar {

// Which blocks of a request a layer of this kind keeps.
enum class Retention { kAllTokens, kWindow, kChunk, kEncoder, kState, kNothing };

struct KindInfo {
  KvKind kind;
  Retention retention;
  bool latent;  // one entry a token, and no V
};

inline constexpr std::array<KindInfo, 9> kKinds = {{
    {KvKind::kFull, Retention::kAllTokens, false},
    {KvKind::kMla, Retention::kAllTokens, true},
    {KvKind::kSliding, Retention::kWindow, false},
    {KvKind::kSlidingMla, Retention::kWindow, true},
    {KvKind::kChunkedLocal, Retention::kChunk, false},
    {KvKind::kSinkFull, Retention::kAllTokens, false},
    {KvKind::kCross, Retention::kEncoder, false},
    {KvKind::kEncoderOnly, Retention::kNothing, false},
    {KvKind::kMamba, Retention::kState, false},
}};
const KindInfo& Info(KvKind kind);

// Which states a mamba layer keeps beside the one that runs: none, those at the ends of the blocks
// that a prefix may be reused from, or one of every block.
enum class StateMode { kRunning, kAligned, kEveryBlock };

struct CacheSpec {
  KvKind kind = KvKind::kFull;
  int64_t kv_heads = 0;
  int64_t head_size = 0, head_size_v = 0;
  DType dtype = DType::kBF16;
  int window = 0;                                    // tokens; the chunk of the chunked kind
  int64_t encoder_tokens = 0;                        // cross: cached at most; 0: as the context
  int tokens_per_state = 1;                          // above 1: several tokens share one state
  std::optional<int64_t> head_slots, content_bytes;  // stand in for kv_heads, and for K + V
  int64_t page_multiple = 1;                         // the page is rounded up to a multiple
  int64_t padded_page = 0;                           // 0: not padded
  std::vector<StateShape> states;                    // mamba: all that is cached
  StateMode state_mode = StateMode::kRunning;        // mamba
  int extra_states = 0;                              // mamba: of drafts and checkpoints
  bool operator==(const CacheSpec&) const = default;
};

// What of the spec and of the model every layer shares.
struct CacheOptions {
  DType dtype = DType::kBF16;  // of K and V
  int64_t encoder_tokens = 0;
  bool prefix_cache = true;
};
CacheSpec CacheOf(const LayerSpec& layer, const CacheOptions& options);

// A layer of this kind runs on an attention row of a plugin: it reads K and V of earlier tokens.
bool NeedsRow(KvKind kind);

// One layer's page of one block: page = H * N * C, C in bytes.
struct PageGeometry {
  int64_t head_slots = 0, states = 0, content_bytes = 0;
  int64_t used_bytes = 0;  // H * N * C
  int64_t page_bytes = 0;  // with padding
  bool operator==(const PageGeometry&) const = default;
};
// Empty when the product does not fit 64 bits, an extent is not positive, or the padded page is
// smaller than what it holds.
std::optional<PageGeometry> PageOf(const CacheSpec& cache, int block_tokens);

// Blocks that one request of `length` tokens holds at most, while `in_flight` of its tokens are in
// one step. The sliding kinds take one more: a window may start inside a block.
int64_t BlocksPerRequest(const CacheSpec& cache, int block_tokens, int64_t length,
                         int64_t in_flight);

}  // namespace ashlar
