#include "catalogue/shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

namespace ashlar {
namespace {

using ::testing::ElementsAre;

constexpr CacheShape kDense = {10, 16, 2, 128};

TEST(DeclaredDims, OfDenseBackends) {
  EXPECT_THAT(*DeclaredDims(ShapeKind::kTokenMajor, kDense), ElementsAre(10, 2, 16, 2, 128));
  EXPECT_THAT(*DeclaredDims(ShapeKind::kKvOutermost, kDense), ElementsAre(2, 10, 16, 2, 128));
  EXPECT_THAT(*DeclaredDims(ShapeKind::kConcatenated, kDense), ElementsAre(10, 2, 16, 256));
}

TEST(DeclaredDims, CannotBeToldApartByTheirNumberOfElements) {
  for (ShapeKind kind :
       {ShapeKind::kTokenMajor, ShapeKind::kKvOutermost, ShapeKind::kConcatenated}) {
    std::vector<int64_t> dims = *DeclaredDims(kind, kDense);
    EXPECT_EQ(std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>()), 81'920);
  }
}

TEST(DeclaredDims, OfLatentBackendsHaveOneHead) {
  EXPECT_THAT(*DeclaredDims(ShapeKind::kLatent, {10, 16, 1, 576}), ElementsAre(10, 16, 576));
  EXPECT_FALSE(DeclaredDims(ShapeKind::kLatent, {10, 16, 8, 576}));
  EXPECT_FALSE(DeclaredDims(ShapeKind::kLatent, {10, 24, 1, 576}));
}

TEST(InPhysicalOrder, PutsDimensionsWhereTheyLie) {
  std::vector<int64_t> logical = {2, 10, 16, 4, 128};  // K/V, B, N, H, D
  EXPECT_THAT(InPhysicalOrder(logical, {1, 3, 0, 2, 4}), ElementsAre(10, 4, 2, 16, 128));
}

TEST(StateDims, HaveSlotsFirst) {
  EXPECT_THAT(StateDims(5, {{8192, 3}, {32, 128, 128}}),
              ElementsAre(ElementsAre(5, 8192, 3), ElementsAre(5, 32, 128, 128)));
}

}  // namespace
}  // namespace ashlar
