// How backends of other engines declare the KV cache of one layer, and the byte order behind it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace ashlar {

enum class ShapeKind {
  kTokenMajor,    // [blocks, 2, tokens, heads, size]: "NHD"
  kKvOutermost,   // [2, blocks, tokens, heads, size]
  kConcatenated,  // [blocks, heads, tokens, K beside V]: "HND", fused
  kLatent,        // [blocks, tokens, size]: one entry a token
};

struct CacheShape {
  int64_t blocks = 0, tokens = 0, heads = 0, size = 0;
};
// Empty: a latent cache of more than one head, or a block that its kernels do not read.
std::optional<std::vector<int64_t>> DeclaredDims(ShapeKind kind, const CacheShape& shape);

// Dimensions from the outermost inwards, when `order` names for each place the logical dimension
// that stands there.
std::vector<int64_t> InPhysicalOrder(const std::vector<int64_t>& logical,
                                     const std::vector<int>& order);

// One view a state of a recurrent layer, slots first.
std::vector<std::vector<int64_t>> StateDims(int64_t slots,
                                            const std::vector<std::vector<int64_t>>& states);

}  // namespace ashlar
