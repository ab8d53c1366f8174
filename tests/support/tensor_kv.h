// The byte strides of a paged cache in each of the six layouts.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "device/row.h"

namespace ashlar::testing {

inline constexpr KvLayout kLayouts[] = {KvLayout::kLBHNC, KvLayout::kLBNHC, KvLayout::kLHBNC,
                                        KvLayout::kBLHNC, KvLayout::kBLNHC, KvLayout::kBHLNC};

struct KvExtents {
  int64_t layers, blocks, heads, tokens, content_bytes;
};
struct KvStrides {
  int64_t layer, block, head, token;
  int64_t total_bytes;
};

// Reads the layout's own name, outermost dimension first.
inline KvStrides StridesOf(KvLayout layout, const KvExtents& extents) {
  KvStrides strides{};
  int64_t stride = 1;
  const std::string_view order = Name(layout);
  for (auto dimension = order.rbegin(); dimension != order.rend(); ++dimension) {
    switch (*dimension) {
      case 'L':
        strides.layer = stride;
        stride *= extents.layers;
        break;
      case 'B':
        strides.block = stride;
        stride *= extents.blocks;
        break;
      case 'H':
        strides.head = stride;
        stride *= extents.heads;
        break;
      case 'N':
        strides.token = stride;
        stride *= extents.tokens;
        break;
      default:
        stride *= extents.content_bytes;
    }
  }
  strides.total_bytes = stride;
  return strides;
}

}  // namespace ashlar::testing
