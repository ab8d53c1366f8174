#include "plan/cache_spec.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked.h"

namespace ashlar {
namespace {

std::optional<int64_t> StateBytes(const std::vector<StateShape>& states) {
  int64_t total = 0;
  for (const StateShape& state : states) {
    std::optional<int64_t> count = CheckedProduct(state.shape);
    std::optional<int64_t> bytes = count ? StorageBytes(state.dtype, *count) : std::nullopt;
    std::optional<int64_t> sum = bytes ? CheckedAdd(total, *bytes) : std::nullopt;
    if (!sum) return std::nullopt;
    total = *sum;
  }
  return total;
}

// Bytes of one head slot at one state: K beside V.
std::optional<int64_t> ContentBytes(const CacheSpec& cache) {
  if (cache.content_bytes) return cache.content_bytes;
  std::optional<int64_t> values = CheckedAdd(cache.head_size, cache.head_size_v);
  return values ? StorageBytes(cache.dtype, *values) : std::nullopt;
}

// Aligned: the running state and that of the last whole block.
int64_t StatesKept(const CacheSpec& cache, int64_t blocks) {
  switch (cache.state_mode) {
    case StateMode::kRunning:
      return 1;
    case StateMode::kAligned:
      return 2;
    case StateMode::kEveryBlock:
      return blocks;
  }
  return blocks;
}

std::optional<PageGeometry> Padded(PageGeometry page, const CacheSpec& cache) {
  std::optional<int64_t> roomy = CheckedAdd(page.used_bytes, cache.page_multiple - 1);
  if (!roomy) return std::nullopt;
  page.page_bytes = *roomy / cache.page_multiple * cache.page_multiple;
  if (cache.padded_page > 0) {
    if (cache.padded_page < page.page_bytes) return std::nullopt;
    page.page_bytes = cache.padded_page;
  }
  return page;
}

}  // namespace

const KindInfo& Info(KvKind kind) {
  for (const KindInfo& info : kKinds) {
    if (info.kind == kind) return info;
  }
  Fail("every KV kind has a row in kKinds", "");
}

CacheSpec CacheOf(const LayerSpec& layer, const CacheOptions& options) {
  const KindInfo& info = Info(layer.kind);
  CacheSpec cache;
  cache.kind = layer.kind;
  if (info.retention == Retention::kState) {
    cache.states = layer.states;
    cache.state_mode = options.prefix_cache ? StateMode::kAligned : StateMode::kRunning;
    return cache;
  }
  cache.kv_heads = layer.kv_heads;
  cache.head_size = layer.head_dim;
  cache.head_size_v = info.latent ? 0 : layer.head_dim_v;
  cache.dtype = options.dtype;
  // The keys of an indexer stand beside the latent of their token.
  if (std::optional<int64_t> latent = ContentBytes(cache); latent && layer.indexer_bytes > 0)
    cache.content_bytes = *latent + layer.indexer_bytes;
  cache.window = layer.window;
  if (info.retention == Retention::kEncoder) cache.encoder_tokens = options.encoder_tokens;
  return cache;
}

bool NeedsRow(KvKind kind) {
  Retention retention = Info(kind).retention;
  return retention != Retention::kState && retention != Retention::kNothing;
}

std::optional<PageGeometry> PageOf(const CacheSpec& cache, int block_tokens) {
  PageGeometry page;
  if (Info(cache.kind).retention == Retention::kState) {
    std::optional<int64_t> bytes = StateBytes(cache.states);
    if (!bytes || *bytes <= 0) return std::nullopt;
    page = {1, 1, *bytes, *bytes, *bytes};
    return Padded(page, cache);
  }
  page.head_slots = cache.head_slots.value_or(cache.kv_heads);
  page.states = cache.tokens_per_state > 0 ? block_tokens / cache.tokens_per_state : 1;
  page.content_bytes = ContentBytes(cache).value_or(0);
  if (page.head_slots <= 0 || page.states <= 0 || page.content_bytes <= 0) return std::nullopt;
  const int64_t extents[] = {page.head_slots, page.states, page.content_bytes};
  std::optional<int64_t> bytes = CheckedProduct(extents);
  if (!bytes) return std::nullopt;
  page.used_bytes = *bytes;
  return Padded(page, cache);
}

int64_t BlocksPerRequest(const CacheSpec& cache, int block_tokens, int64_t length,
                         int64_t in_flight) {
  int64_t block = block_tokens;
  switch (Info(cache.kind).retention) {
    case Retention::kAllTokens:
      return CeilDiv(length, block);
    case Retention::kEncoder:
      return CeilDiv(cache.encoder_tokens > 0 ? cache.encoder_tokens : length, block);
    case Retention::kWindow:
      return CeilDiv(std::min(cache.window - 1 + in_flight, length), block) + 1;
    case Retention::kChunk:
      return CeilDiv(std::min(cache.window + in_flight, length), block);
    case Retention::kState:
      return StatesKept(cache, CeilDiv(length, block)) + cache.extra_states;
    case Retention::kNothing:
      return 0;
  }
  return 0;
}

}  // namespace ashlar
