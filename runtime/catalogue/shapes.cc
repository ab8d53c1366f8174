#include "catalogue/shapes.h"

#include "base/check.h"

namespace ashlar {
namespace {

// Kernels over latent caches read blocks of multiples of this.
constexpr int64_t kLatentBlock = 16;

}  // namespace

std::optional<std::vector<int64_t>> DeclaredDims(ShapeKind kind, const CacheShape& shape) {
  switch (kind) {
    case ShapeKind::kTokenMajor:
      return {{shape.blocks, 2, shape.tokens, shape.heads, shape.size}};
    case ShapeKind::kKvOutermost:
      return {{2, shape.blocks, shape.tokens, shape.heads, shape.size}};
    case ShapeKind::kConcatenated:
      return {{shape.blocks, shape.heads, shape.tokens, 2 * shape.size}};
    case ShapeKind::kLatent:
      if (shape.heads != 1 || shape.tokens % kLatentBlock != 0) return std::nullopt;
      return {{shape.blocks, shape.tokens, shape.size}};
  }
  return std::nullopt;
}

std::vector<int64_t> InPhysicalOrder(const std::vector<int64_t>& logical,
                                     const std::vector<int>& order) {
  Check(order.size() == logical.size(), "an order names every dimension");
  std::vector<int64_t> physical;
  for (int dim : order) physical.push_back(logical.at(static_cast<size_t>(dim)));
  return physical;
}

std::vector<std::vector<int64_t>> StateDims(int64_t slots,
                                            const std::vector<std::vector<int64_t>>& states) {
  std::vector<std::vector<int64_t>> views;
  for (const std::vector<int64_t>& state : states) {
    std::vector<int64_t>& view = views.emplace_back(1, slots);
    view.insert(view.end(), state.begin(), state.end());
  }
  return views;
}

}  // namespace ashlar
