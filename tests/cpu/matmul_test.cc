// Matmul at every level against plain sums over the unpacked rows. That those rows are what the
// formats define is the conformance test's part; it runs the best level only.
#include <cmath>
#include <memory>

#include "common/shapes.h"
#include "half.h"
#include "levels.h"
#include "ops.h"
#include "weight.h"

namespace ashlar::cpu {
namespace {

constexpr ashlar_dtype kTypes[] = {ASHLAR_F32,  ASHLAR_F16,  ASHLAR_BF16, ASHLAR_Q8_0,
                                   ASHLAR_Q4_0, ASHLAR_Q4_1, ASHLAR_Q5_0, ASHLAR_Q5_1,
                                   ASHLAR_Q4_K, ASHLAR_Q5_K, ASHLAR_Q6_K};

int64_t ColumnsOf(ashlar_dtype dtype) {
  const int quant = QuantIndex(dtype);
  return quant < 0 ? 1 : kQuantFormats[quant].source_columns;
}
int64_t BytesOf(ashlar_dtype dtype) {
  const int quant = QuantIndex(dtype);
  return quant < 0 ? FloatBytes(dtype) : kQuantFormats[quant].source_bytes;
}

// Where the 16-bit scales stand in a source block.
std::vector<int> ScaleOffsets(ashlar_dtype dtype) {
  if (dtype == ASHLAR_Q6_K) return {208};
  const int quant = QuantIndex(dtype);
  return kQuantFormats[quant].minimum ? std::vector<int>{0, 2} : std::vector<int>{0};
}

class Matmuls : public LevelTest {
 protected:
  struct Made {
    std::vector<std::vector<uint8_t>> sources;
    std::unique_ptr<ashlar_weight> weight;
  };

  std::vector<uint8_t> Source(ashlar_dtype dtype, int64_t rows, int64_t cols) {
    const int64_t blocks = rows * cols / ColumnsOf(dtype);
    std::vector<uint8_t> bytes(blocks * BytesOf(dtype));
    if (QuantIndex(dtype) < 0) {
      const std::vector<float> values = Normals(rows * cols, 0.05f);
      device_.kernels.from_floats(bytes.data(), dtype, values.data(), rows * cols);
      return bytes;
    }
    for (uint8_t& b : bytes) b = static_cast<uint8_t>(Pick(0, 255));
    for (int64_t block = 0; block < blocks; ++block)
      for (int at : ScaleOffsets(dtype)) {
        const uint16_t d = F16FromFloat(0.0001f * Pick(1, 99) * (Pick(0, 1) ? 1 : -1));
        memcpy(bytes.data() + block * BytesOf(dtype) + at, &d, 2);
      }
    return bytes;
  }

  Made Make(const std::vector<ashlar_dtype>& types, const std::vector<int64_t>& rows,
            int64_t cols) {
    Made made;
    ashlar_weight_desc desc{};
    desc.parts = static_cast<int32_t>(types.size());
    desc.cols = cols;
    const void* pointers[ASHLAR_MAX_PARTS];
    for (size_t i = 0; i < types.size(); ++i) {
      desc.dtype[i] = types[i];
      desc.rows[i] = rows[i];
      made.sources.push_back(Source(types[i], rows[i], cols));
      pointers[i] = made.sources[i].data();
    }
    ashlar_weight* weight = nullptr;
    EXPECT_EQ(CreateWeight(device_, desc, pointers, &weight), ASHLAR_OK) << LastError();
    made.weight.reset(weight);
    return made;
  }

  std::vector<float> Rows(const ashlar_weight& weight) {
    std::vector<float> all(weight.rows * weight.cols);
    std::vector<int32_t> ids(weight.rows);
    for (int64_t i = 0; i < weight.rows; ++i) ids[i] = static_cast<int32_t>(i);
    EXPECT_EQ(Embed(device_, Matrix(all, weight.rows, weight.cols), weight, ids.data(), 1.0f),
              ASHLAR_OK);
    return all;
  }

  std::vector<float> Run(const ashlar_weight& weight, const std::vector<float>& x, int64_t m,
                         const std::vector<float>& bias) {
    return Run(device_, weight, x, m, bias);
  }
  std::vector<float> Run(ashlar_device& device, const ashlar_weight& weight, std::vector<float> x,
                         int64_t m, std::vector<float> bias) {
    std::vector<float> out(m * weight.rows, NAN);
    const ashlar_tensor b = {bias.data(), ASHLAR_F32, 1, {weight.rows}, {4}};
    EXPECT_EQ(Matmul(device, Matrix(out, m, weight.rows), Matrix(x, m, weight.cols), weight,
                     bias.empty() ? ashlar_tensor{} : b),
              ASHLAR_OK)
        << LastError();
    return out;
  }

  void Compare(const std::vector<ashlar_dtype>& types, const std::vector<int64_t>& rows,
               int64_t cols, int64_t m) {
    const Made made = Make(types, rows, cols);
    const int64_t n = made.weight->rows;
    const std::vector<float> w = Rows(*made.weight), x = Normals(m * cols);
    const std::vector<float> bias = Pick(0, 1) ? Normals(n) : std::vector<float>();
    const std::vector<float> out = Run(*made.weight, x, m, bias);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = bias.empty() ? 0 : bias[j], x_norm = 0, w_norm = 0;
        for (int64_t k = 0; k < cols; ++k) {
          sum += double{x[i * cols + k]} * w[j * cols + k];
          x_norm += x[i * cols + k] * x[i * cols + k];
          w_norm += w[j * cols + k] * w[j * cols + k];
        }
        // 8-bit x is off by up to 1/254 of its block's largest value, bf16 x by 2^-8 of each.
        const double tolerance = 0.02 * std::sqrt(x_norm * w_norm) + 1e-5;
        ASSERT_NEAR(out[i * n + j], sum, tolerance)
            << "type " << types[0] << " m " << m << " row " << i << " column " << j;
      }
  }
};

TEST_P(Matmuls, AgreeWithPlainSums) {
  for (ashlar_dtype type : kTypes)
    for (int64_t m : {1, 2, 3, 5, 8, 9, 23, 49})
      Compare({type}, {Pick(1, 70)},
              ColumnsOf(type) == 1 ? Pick(1, 100) : ColumnsOf(type) * Pick(1, 3), m);
}

TEST_P(Matmuls, AgreeForMixedStacks) {
  Compare({ASHLAR_Q4_0, ASHLAR_Q6_K, ASHLAR_BF16, ASHLAR_Q8_0}, {40, 17, 5, 64}, 512, 4);
  Compare({ASHLAR_Q4_0, ASHLAR_Q6_K, ASHLAR_BF16, ASHLAR_Q8_0}, {40, 17, 5, 64}, 512, 19);
}

TEST_P(Matmuls, ARowHasTheSameBitsInEveryBatchOfAnInvariantDevice) {
  ashlar_device device(*GetParam().kernels, GetParam().threads, true);
  for (ashlar_dtype type : kTypes) {
    const int64_t cols = ColumnsOf(type) == 1 ? 300 : 768;  // two runs of decoded blocks
    constexpr int64_t kRows = 38;                           // two tiles and a part of one
    const Made made = Make({type}, {kRows}, cols);
    const int64_t most = 205;  // more rows of x than decoded tiles are kept for
    const std::vector<float> x = Normals(most * cols);
    const std::vector<float> all = Run(device, *made.weight, x, most, {});
    for (int64_t m : {1, 2, 3, 4, 7, 8, 9, 13, 64}) {
      const int64_t at = Pick(0, most - m);
      const std::vector<float> part =
          Run(device, *made.weight, {x.begin() + at * cols, x.begin() + (at + m) * cols}, m, {});
      ASSERT_EQ(memcmp(part.data(), all.data() + at * kRows, part.size() * 4), 0)
          << "type " << type << " m " << m;
    }
  }
}

// The largest code products meet: saturation or a wrapped sign shows.
TEST_P(Matmuls, ExtremeCodesDoNotSaturate) {
  for (int8_t code : {int8_t{-128}, int8_t{127}}) {
    std::vector<uint8_t> source(16 * 34, static_cast<uint8_t>(code));
    const uint16_t one = F16FromFloat(1.0f);
    for (int row = 0; row < 16; ++row) memcpy(source.data() + 34 * row, &one, 2);
    ashlar_weight_desc desc{};
    desc.parts = 1, desc.dtype[0] = ASHLAR_Q8_0, desc.rows[0] = 16, desc.cols = 32;
    const void* pointer = source.data();
    ashlar_weight* raw = nullptr;
    ASSERT_EQ(CreateWeight(device_, desc, &pointer, &raw), ASHLAR_OK);
    const std::unique_ptr<ashlar_weight> weight(raw);
    for (float x : {127.0f, -127.0f})
      for (int64_t m : {1, 16}) {
        const std::vector<float> out = Run(*weight, std::vector<float>(32 * m, x), m, {});
        for (float value : out) EXPECT_FLOAT_EQ(value, 32.0f * code * x);
      }
  }
}

TEST_P(Matmuls, ANotANumberStaysOne) {
  for (ashlar_dtype type : kTypes) {
    const int64_t cols = ColumnsOf(type) == 1 ? 96 : 512;
    const Made made = Make({type}, {40}, cols);
    for (int64_t m : {1, 9, 32}) {
      std::vector<float> x = Normals(m * cols);
      x[(m - 1) * cols + Pick(0, cols - 1)] = NAN;
      const std::vector<float> out = Run(*made.weight, x, m, {});
      for (int64_t j = 0; j < 40; ++j)
        ASSERT_TRUE(std::isnan(out[(m - 1) * 40 + j])) << "type " << type << " m " << m;
      for (int64_t j = 0; j < (m - 1) * 40; ++j) ASSERT_TRUE(std::isfinite(out[j]));
    }
  }
}

// Rows of 40 columns end inside a register and a tile: what follows them is another row's.
TEST_P(Matmuls, AWeightRowOfNotANumbersChangesNoOther) {
  constexpr int64_t kRows = 32, kCols = 40, kBad = 5;
  Made made = Make({ASHLAR_BF16}, {kRows}, kCols);
  std::fill_n(made.sources[0].begin() + kBad * kCols * 2, kCols * 2, 0xff);
  for (int64_t m : {1, 17}) {
    const std::vector<float> out = Run(*made.weight, Normals(m * kCols), m, {});
    for (int64_t i = 0; i < m * kRows; ++i)
      ASSERT_EQ(std::isnan(out[i]), i % kRows == kBad) << "m " << m << " at " << i;
  }
}

TEST_P(Matmuls, RefuseIdsOutsideTheTable) {
  const Made made = Make({ASHLAR_Q4_0}, {20}, 64);
  std::vector<float> out(64);
  for (int32_t id : {-1, 20}) {
    EXPECT_EQ(Embed(device_, Matrix(out, 1, 64), *made.weight, &id, 1.0f), ASHLAR_FAILED);
    EXPECT_EQ(LastError(), "embed: id " + std::to_string(id) + " of 20 rows");
  }
}

ASHLAR_LEVEL_SUITE(Matmuls, true);

}  // namespace
}  // namespace ashlar::cpu
