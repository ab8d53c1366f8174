// How vLLM 0.33 makes KV groups of layers. Every group draws block ids from one pool, so pages of
// different sizes are made equal, or packed into blocks that hold all layers of a group.
#pragma once

#include <string_view>
#include <vector>

#include "plan/cache_spec.h"
#include "plan/layout.h"

namespace ashlar {

// What one layer caches, as this engine keeps it.
struct ReferenceCache {
  CacheSpec cache;  // of a full layer that was a sliding one, with its window
  int block_tokens = 0;
  int chunk = 0;        // of a full layer that was a chunked one
  bool hidden = false;  // states of hidden layers: latent, and cut to what pages there are
  bool operator==(const ReferenceCache&) const = default;
};
// Nothing when the page has no size.
std::optional<PageGeometry> PageOf(const ReferenceCache& cache);

struct ReferenceGroup {
  std::vector<int> layers;
  std::vector<ReferenceCache> caches;  // of each layer
  bool mixed = false;  // pages may differ; a block of the group holds one of each layer
  int block_tokens() const { return caches.front().block_tokens; }
  int64_t block_bytes() const;  // of all its layers
};

enum class GroupError {
  kNone,
  kNoPage,      // a page without a size, or padded to less than it holds
  kPromotion,   // layers that stay different when windows and chunks are kept in full
  kWindows,     // promoted layers with two windows or two chunks
  kUnknown,     // a promotion that this engine cannot write down
  kPages,       // pages that can be made equal neither by larger blocks nor by padding
  kEmptyGroup,  // a group without layers
};
std::string_view Label(GroupError error);  // "promotion"

struct ReferenceGrouping {
  GroupError error = GroupError::kNone;
  std::vector<ReferenceGroup> groups;
};
// `hybrid`: layers may live for different spans of tokens; otherwise all are kept in full.
ReferenceGrouping GroupLikeReference(const std::vector<ReferenceCache>& layers, KvLayout layout,
                                     bool hybrid);

}  // namespace ashlar
