// One allocation for all groups of vLLM 0.33: where the pages of each layer lie, how many blocks
// there are, and in which units the scheduler and the prefix cache count.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "catalogue/groups.h"
#include "catalogue/layouts.h"
#include "plan/block_size.h"

namespace ashlar {

// Layers whose pages lie at offset + l * layer_stride + b * block_stride. Placements of different
// groups overlap: a block belongs to one group at a time.
struct ReferencePlacement {
  std::vector<int> layers;
  int64_t size = 0;  // of the whole allocation
  int64_t layer_stride = 0, block_stride = 0, offset = 0;
  bool operator==(const ReferencePlacement&) const = default;
};

struct ReferencePool {
  LayoutError error = LayoutError::kNone;
  int64_t block_bytes = 0;  // of the group whose block is largest
  int64_t blocks = 1;       // without groups there is the null block
  std::vector<ReferencePlacement> placements;
};
// `blocks` > 0 stands in for what `bytes` hold.
ReferencePool PlaceReferenceGroups(const std::vector<ReferenceGroup>& groups, KvLayout layout,
                                   int64_t bytes, int64_t blocks = 0);

// Blocks that one request of `length` tokens holds in this group.
int64_t ReferenceBlocksPerRequest(const ReferenceGroup& group, int64_t length, int64_t in_flight);

struct ReferenceUnitRequest {
  bool prefix_cache = true;
  int prefix_unit = 0;  // asked for; 0: automatic
};
// Empty: the unit that was asked for suits no group, or is not the block of the only one.
std::optional<Granularity> ReferenceUnits(const std::vector<ReferenceGroup>& groups,
                                          const ReferenceUnitRequest& request);

// A manager block of one layer as its kernel sees it.
struct ReferenceView {
  LayoutError error = LayoutError::kNone;
  KvExtents extents{};  // [L, B, H, N, C], of kernel blocks
  KvStrides strides{};
};
// `fixed`: strides that are given; 0: free.
ReferenceView ViewOfReference(const ReferenceCache& cache, KvLayout layout, int64_t layers,
                              int64_t blocks, int kernel_block, const KvStrides& fixed = {});

// The view of a layer in its placement, whose blocks must follow each other to be split.
ReferenceView KernelViewOf(const ReferenceCache& cache, KvLayout layout, int64_t layers,
                           int64_t blocks, int kernel_block, int64_t block_stride);

}  // namespace ashlar
