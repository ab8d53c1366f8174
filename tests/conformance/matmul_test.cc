#include <gtest/gtest.h>

#include "conformance/weights.h"

namespace ashlar::testing {
namespace {

class Matmul : public PluginTest {
 protected:
  // Runs the stack on every variant of the device against the reference.
  void Compare(const RandomStack& stack, int64_t m, bool with_bias);
  std::vector<int64_t> ColumnsFor(const std::vector<DType>& types);
};

struct Size {
  double norm, largest;
};

// Of each row of values [rows, cols].
std::vector<Size> SizesOf(const std::vector<float>& values, int64_t rows, int64_t cols) {
  std::vector<Size> sizes;
  for (int64_t row = 0; row < rows; ++row) {
    const float* first = values.data() + row * cols;
    sizes.push_back({Norm(first, cols), Largest(first, cols)});
  }
  return sizes;
}

// The error allowed in one output: x [cols] against the weight row w [cols].
//   float32, float16: sums in float32 in some order. 2e-6 |x||w| covers the rounding of the
//     partial sums of vectorised loops and of products up to the largest cols used here.
//     A device brings x to float16 too, within 2^-11 of each value.
//   bfloat16: hardware that multiplies bfloat16 takes x rounded to it too, within 2^-8 of each
//     value; by Cauchy's inequality the sum moves by at most 2^-8 |x||w|.
//   quantised: x may be rounded to int8 with one step for a whole row, so each value moves by at
//     most max|x| / 254, independently of the others: the sum moves by |w| max|x| / (254 sqrt 3)
//     in standard deviation. 1/32 is seven deviations for a weight whose quantised part has twice
//     the norm of the weight itself, as offset formats have.
double Tolerance(DType type, bool device, const Size& x, const Size& w) {
  const double sums = 2e-6 * x.norm * w.norm + 1e-30;
  if (Info(type).elements > 1) return sums + x.largest * w.norm / 32;
  if (type == DType::kBF16) return sums + x.norm * w.norm / 256;
  if (type == DType::kF16 && device) return sums + x.norm * w.norm / 2048;
  return sums;
}

void Matmul::Compare(const RandomStack& stack, int64_t m, bool with_bias) {
  const int64_t n = stack.rows(), k = stack.cols();
  std::vector<float> x = random_.Normals(m * k);
  for (float& value : x) {
    if (random_.Chance(0.01)) value *= 8;  // activations have outliers
  }
  // A row of zeros has no scale to quantise by.
  if (m > 1 && random_.Chance(0.5)) std::fill(x.begin(), x.begin() + k, 0.0f);
  const std::vector<float> bias = with_bias ? random_.Normals(n) : std::vector<float>();
  const bool back_guard = random_.Chance(0.5);
  const std::vector<float> want = RunMatmul(Reference(), stack, m, x, bias, back_guard);

  const std::vector<Size> x_sizes = SizesOf(x, m, k), w_sizes = SizesOf(stack.Floats(), n, k);
  std::vector<double> tolerance;
  for (const Size& x_size : x_sizes) {
    for (int64_t j = 0; j < n; ++j) {
      const double rounding = with_bias ? 1e-6 * std::fabs(double{bias[size_t(j)]}) : 0;
      tolerance.push_back(rounding + Tolerance(stack.type_of_row(j), plugin().memory() != "host",
                                               x_size, w_sizes[size_t(j)]));
    }
  }
  std::string op = "matmul mixed";
  if (stack.parts().size() == 1) {
    op = fmt::format("matmul {}", Info(stack.type_of_row(0)).name);
  }
  const std::string what = fmt::format("m {} {}{}", m, stack.text(), with_bias ? " bias" : "");
  for (const DeviceOptions& options : Variants(plugin())) {
    const auto device = Open(options);
    ExpectWithin(plugin().name(), op, fmt::format("{} threads {}", what, options.threads),
                 RunMatmul(*device, stack, m, x, bias, back_guard), want, tolerance);
  }
}

// Column counts that all of `types` can store: whole blocks, and past a multiple of 256 where the
// format allows it.
std::vector<int64_t> Matmul::ColumnsFor(const std::vector<DType>& types) {
  int64_t block = 1;
  for (DType type : types) block = std::max<int64_t>(block, Info(type).elements);
  std::vector<int64_t> columns;
  for (int64_t blocks : {1, 2, 3, 5, 7}) columns.push_back(blocks * block);
  if (block == 1) columns = {1, 3, 17, 32, 63, 129, 200, 257, 320};
  if (block == 32) columns.insert(columns.end(), {288, 352, 576});
  return columns;
}

TEST_P(Matmul, AgreesForEveryTypeAndBatchSize) {
  for (DType type : kWeightTypes) {
    std::vector<int64_t> batches = {40, 64, 65, 97};
    for (int64_t m = 1; m <= 33; ++m) batches.push_back(m);
    for (int64_t m : batches) {
      const int64_t rows = 2 * random_.Int(0, 20) + 1;
      const RandomStack stack({type}, {rows}, random_.Pick(ColumnsFor({type})), random_);
      Compare(stack, m, random_.Chance(0.3));
    }
  }
}

TEST_P(Matmul, AgreesForManyRowsAndColumns) {
  for (DType type : kWeightTypes) {
    const RandomStack stack({type}, {random_.Int(200, 400)}, 256 * random_.Int(2, 5), random_);
    Compare(stack, random_.Int(1, 20), true);
  }
}

TEST_P(Matmul, AgreesForStacksOfMixedTypes) {
  for (int i = 0; i < 40; ++i) {
    std::vector<DType> types;
    std::vector<int64_t> rows;
    const int64_t parts = random_.Int(2, ASHLAR_MAX_PARTS);
    for (int64_t part = 0; part < parts; ++part) {
      types.push_back(kWeightTypes[random_.Int(0, std::size(kWeightTypes) - 1)]);
      rows.push_back(random_.Int(1, 40));
    }
    const RandomStack stack(types, rows, random_.Pick(ColumnsFor(types)), random_);
    Compare(stack, random_.Int(1, 20), random_.Chance(0.5));
  }
}

// One value of x at a time, a power of two: an int8 copy of such a row is exact, so each output is
// one weight, and a single misplaced one shows.
TEST_P(Matmul, SeesEachWeightInItsPlace) {
  for (DType type : kWeightTypes) {
    const int64_t k = Info(type).elements == 256 ? 512 : 96;
    const RandomStack stack({type}, {19}, k, random_);
    std::vector<float> x(static_cast<size_t>(k * k));
    for (int64_t i = 0; i < k; ++i) x[static_cast<size_t>(i * k + i)] = 4;
    const std::vector<float> w = stack.Floats();
    std::vector<float> want;
    std::vector<double> tolerance;
    for (int64_t i = 0; i < k; ++i) {
      for (int64_t row = 0; row < stack.rows(); ++row) {
        const float weight = w[static_cast<size_t>(row * k + i)];
        want.push_back(4 * weight);
        // The rounding of d, of a scale of x, and of an offset that cancels in part: far less than
        // one step of any format.
        tolerance.push_back(4e-5 * Largest(w.data() + row * k, k) +
                            StorageStep(plugin(), type) * std::fabs(double{weight}) * 4);
      }
    }
    for (const DeviceOptions& options : Variants(plugin())) {
      const auto device = Open(options);
      ExpectWithin(plugin().name(), fmt::format("weights {}", Info(type).name), stack.text(),
                   RunMatmul(*device, stack, k, x, {}, true), want, tolerance);
      for (int64_t i : {int64_t{0}, k / 2 + 3, k - 1}) {
        const std::vector<float> one(x.begin() + i * k, x.begin() + (i + 1) * k);
        const auto at = static_cast<size_t>(i * stack.rows());
        const auto count = static_cast<size_t>(stack.rows());
        ExpectWithin(plugin().name(), fmt::format("weights {}", Info(type).name),
                     stack.text() + " alone", RunMatmul(*device, stack, 1, one, {}, true),
                     std::span(want).subspan(at, count), std::span(tolerance).subspan(at, count));
      }
    }
  }
}

TEST_P(Matmul, RefusesShapesThatDoNotMeet) {
  const auto device = Open();
  const ashlar_plugin& table = plugin().table();
  const RandomStack stack({DType::kF32}, {4}, 8, random_);
  const WeightPart part = stack.parts()[0];
  ashlar_weight_desc desc{};
  desc.parts = 1, desc.dtype[0] = ASHLAR_F32, desc.rows[0] = 4, desc.cols = 8;
  const void* source = part.bytes.data();
  ashlar_device* raw = nullptr;
  const ashlar_open open{0, 1, 0};
  ASSERT_EQ(table.open(&open, &raw), ASHLAR_OK);
  ashlar_weight* weight = nullptr;
  ASSERT_EQ(table.weight_create(raw, &desc, &source, &weight), ASHLAR_OK);
  const Guarded<float> memory(*device, std::vector<float>(64));
  const auto matrix = [&](int64_t rows, int64_t cols) {
    return ToC(Tensor::Of(memory.data(), DType::kF32, {rows, cols}));
  };
  EXPECT_EQ(table.matmul(raw, nullptr, matrix(2, 4), matrix(2, 7), weight, {}), ASHLAR_FAILED);
  EXPECT_STRNE(table.last_error(), "");
  EXPECT_EQ(table.matmul(raw, nullptr, matrix(2, 3), matrix(2, 8), weight, {}), ASHLAR_FAILED);
  EXPECT_EQ(table.matmul(raw, nullptr, matrix(1, 4), matrix(2, 8), weight, {}), ASHLAR_FAILED);
  table.weight_destroy(raw, weight);

  desc.dtype[0] = ASHLAR_Q8_0;  // 8 columns are no whole block
  EXPECT_EQ(table.weight_create(raw, &desc, &source, &weight), ASHLAR_FAILED);
  desc.dtype[0] = ASHLAR_I32;
  EXPECT_EQ(table.weight_create(raw, &desc, &source, &weight), ASHLAR_FAILED);
  table.close(raw);
}

ASHLAR_PLUGIN_SUITE(Matmul);

}  // namespace
}  // namespace ashlar::testing
