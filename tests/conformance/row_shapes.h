// What shapes a row says it takes, as lists to draw from.
#pragma once

#include <vector>

#include "device/row.h"
#include "support/tensor_kv.h"

namespace ashlar::testing {

inline std::vector<int> HeadSizesOf(const AttentionRow& row) {
  if (!row.head_sizes.empty()) return row.head_sizes;
  std::vector<int> sizes;
  for (int size : {1, 5, 8, 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 256}) {
    if (size % row.head_multiple == 0) sizes.push_back(size);
  }
  return sizes;
}

inline std::vector<int> BlocksOf(const AttentionRow& row) {
  std::vector<int> blocks;
  for (const BlockRule& rule : row.kernel_blocks) {
    for (int times : {1, 2, 3, 4, 8}) {
      if (times == 1 || rule.multiple) blocks.push_back(rule.tokens * times);
    }
  }
  return blocks;
}

inline std::vector<KvLayout> LayoutsOf(const AttentionRow& row) {
  if (!row.layouts.empty()) return row.layouts;
  return {std::begin(kLayouts), std::end(kLayouts)};
}

inline bool Takes(const AttentionRow& row, KvKind kind) {
  for (KvKind taken : row.kinds) {
    if (taken == kind) return true;
  }
  return false;
}

// Rows whose op arguments this program can make: dense K and V, full or sliding.
inline bool Testable(const AttentionRow& row) {
  return row.verification != Verification::kPlanned && !row.mla &&
         (Takes(row, KvKind::kFull) || Takes(row, KvKind::kSliding));
}

}  // namespace ashlar::testing
