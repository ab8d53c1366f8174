#include "common/shapes.h"

#include <gtest/gtest.h>

namespace ashlar {
namespace {

float memory[64];

ashlar_tensor Matrix(int64_t rows, int64_t cols) {
  return {memory, ASHLAR_F32, 2, {rows, cols}, {cols * 4, 4}};
}

TEST(Shapes, AMatrixOfAnyExtentPasses) {
  EXPECT_EQ(CheckMatrix("x", Matrix(3, 4), -1, -1), "");
  EXPECT_EQ(CheckMatrix("x", Matrix(3, 4), 3, 4), "");
}

TEST(Shapes, RowsMayLieApartWholeFloats) {
  ashlar_tensor t = Matrix(2, 4);
  t.stride[0] = 32;
  EXPECT_EQ(CheckMatrix("x", t, 2, 4), "");
  t.stride[0] = 18;
  EXPECT_EQ(CheckMatrix("x", t, 2, 4), "x: stride of dimension 0 is 18");
  t = Matrix(2, 4);
  t.stride[1] = 8;
  EXPECT_EQ(CheckMatrix("x", t, 2, 4), "x: stride of dimension 1 is 8");
}

TEST(Shapes, NamesTheDimensionThatDiffers) {
  EXPECT_EQ(CheckMatrix("x", Matrix(3, 4), 3, 5), "x: shape [3, 4], dimension 1 should be 5");
  EXPECT_EQ(CheckVector("bias", Matrix(3, 4), 3), "bias: rank 2");
}

TEST(Shapes, ATokenOfHeadsIsDense) {
  ashlar_tensor t{memory, ASHLAR_F32, 3, {2, 3, 4}, {48, 16, 4}};
  EXPECT_EQ(CheckHeads("q", t, -1, 3, 4), "");
  t.stride[1] = 32;
  EXPECT_EQ(CheckHeads("q", t, -1, 3, 4), "q: stride of dimension 1 is 32");
}

TEST(Shapes, DataIsNeededUnlessThereIsNone) {
  ashlar_tensor t = Matrix(0, 4);
  t.data = nullptr;
  EXPECT_EQ(CheckMatrix("x", t, 0, 4), "");
  t = Matrix(1, 4);
  t.data = nullptr;
  EXPECT_EQ(CheckMatrix("x", t, 1, 4), "x: no data");
  t = Matrix(1, 4);
  t.dtype = ASHLAR_F16;
  EXPECT_EQ(CheckMatrix("x", t, 1, 4), "x: not float32");
}

TEST(Shapes, ElementsOfTwoBytesLieTwoApart) {
  ashlar_tensor t{memory, ASHLAR_BF16, 2, {3, 4}, {8, 2}};
  EXPECT_EQ(CheckMatrix("x", t, 3, 4, kFloats), "");
  t.stride[1] = 4;
  EXPECT_EQ(CheckMatrix("x", t, 3, 4, kFloats), "x: stride of dimension 1 is 4");
  t.dtype = ASHLAR_I32;
  EXPECT_EQ(CheckMatrix("x", t, 3, 4, kFloats), "x: not float32, float16 or bfloat16");
}

TEST(Shapes, ACacheHasOneOfTheTypesAsked) {
  constexpr uint32_t kNarrow = ASHLAR_DTYPE_BIT(ASHLAR_F16) | ASHLAR_DTYPE_BIT(ASHLAR_BF16) |
                               ASHLAR_DTYPE_BIT(ASHLAR_F8_E4M3);
  ashlar_kv_view kv{memory, 64, 32, 8, 1, ASHLAR_F8_E4M3, 2, 2, 4, 4};
  EXPECT_EQ(CheckKv(kv, kNarrow), "");
  kv.dtype = ASHLAR_F32;
  EXPECT_EQ(CheckKv(kv, kNarrow), "kv: not float16, bfloat16 or float8");
}

}  // namespace
}  // namespace ashlar
