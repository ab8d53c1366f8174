// The reference against formulas written once more, plainly, in double: what every other plugin is
// measured by must not be measured by itself.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "conformance/attention_case.h"
#include "conformance/qkv_case.h"
#include "conformance/weights.h"
#include "support/tensor_float.h"

namespace ashlar::testing {
namespace {

class ReferenceTest : public ::testing::Test {
 protected:
  Random random_{RunSeed()};
};

// Results that were computed in double and rounded once.
std::vector<double> Rounding(const std::vector<float>& want, double relative = 0x1p-22) {
  std::vector<double> tolerance;
  for (float value : want) tolerance.push_back(relative * std::fabs(double{value}) + 1e-9);
  return tolerance;
}

// softmax(scale * q K^T) V with K and V contiguous, no blocks, no strides.
std::vector<float> NaiveAttention(const AttentionCase& problem) {
  const AttentionShape& shape = problem.shape();
  std::vector<float> all;
  int token = 0;
  for (size_t s = 0; s < shape.sequences.size(); ++s) {
    const Sequence& sequence = shape.sequences[s];
    for (int query = 0; query < sequence.queries; ++query, ++token) {
      const int position = sequence.context - sequence.queries + query;
      for (int head = 0; head < shape.q_heads(); ++head) {
        std::vector<double> out(static_cast<size_t>(shape.head_dim));
        double total = 0;
        for (int key = 0; key <= position; ++key) {
          if (shape.window > 0 && key <= position - shape.window) continue;
          const float* kv = problem.KeyValue(static_cast<int>(s), key, head / shape.query_ratio);
          double score = 0;
          for (int d = 0; d < shape.head_dim; ++d) {
            score += double{problem.Query(token, head)[d]} * double{kv[d]};
          }
          // Scores stay far below 700, so exp needs no maximum taken off.
          const double weight = std::exp(score * double{problem.scale()});
          total += weight;
          for (int d = 0; d < shape.head_dim; ++d) {
            out[static_cast<size_t>(d)] += weight * double{kv[shape.head_dim + d]};
          }
        }
        for (double value : out) all.push_back(static_cast<float>(value / total));
      }
    }
  }
  return all;
}

TEST_F(ReferenceTest, AttentionIsSoftmaxOverVisibleKeys) {
  const int row = Reference().plugin().RowIndex("REFERENCE");
  for (KvLayout layout : kLayouts) {
    for (DType kv_dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3}) {
      for (int window : {0, 1, 13, 50, 500}) {
        AttentionShape shape;
        shape.layout = layout;
        shape.kv_dtype = kv_dtype;
        shape.block_tokens = static_cast<int>(random_.Int(1, 40));
        shape.head_dim = static_cast<int>(random_.Int(1, 70));
        shape.kv_heads = static_cast<int>(random_.Int(1, 3));
        shape.query_ratio = static_cast<int>(random_.Int(1, 16));
        shape.window = window;
        const int prompt = static_cast<int>(random_.Int(1, 30));
        shape.sequences = {{prompt, prompt}, {static_cast<int>(random_.Int(1, 120)), 1}, {90, 8}};
        random_.Shuffle(shape.sequences);
        const AttentionCase problem(shape, random_);
        const std::vector<float> want = NaiveAttention(problem);
        ExpectWithin("reference", "naive attention", shape.text(), problem.Run(Reference(), row),
                     want, Rounding(want));
      }
    }
  }
}

TEST_F(ReferenceTest, MatmulIsSumOfProductsPlusBias) {
  const RandomStack stack({DType::kQ4_K, DType::kF32, DType::kQ5_1}, {3, 5, 2}, 512, random_);
  const int64_t m = 4, n = stack.rows(), k = stack.cols();
  const std::vector<float> x = random_.Normals(m * k), bias = random_.Normals(n);
  const std::vector<float> w = stack.Floats();
  std::vector<float> want;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t c = 0; c < k; ++c) {
        sum += double{x[size_t(i * k + c)]} * double{w[size_t(j * k + c)]};
      }
      want.push_back(static_cast<float>(sum + double{bias[size_t(j)]}));
    }
  }
  ExpectWithin("reference", "naive matmul", stack.text(),
               RunMatmul(Reference(), stack, m, x, bias, true), want, Rounding(want));
}

// The value at i of a head after norm and rotation, by complex multiplication.
std::vector<float> NaiveHead(const QkvCase& problem, const float* head, int position, bool of_k) {
  const QkvShape& shape = problem.shape();
  const int dim = shape.head_dim, half = shape.rotary_dim / 2;
  std::vector<double> values(head, head + dim);
  if (of_k ? shape.k_norm : shape.q_norm) {
    double squares = 0;
    for (double value : values) squares += value * value;
    for (int i = 0; i < dim; ++i) {
      values[size_t(i)] *=
          double{problem.norm(of_k)[size_t(i)]} / std::sqrt(squares / dim + double{QkvCase::kEps});
    }
  }
  for (int i = 0; i < half; ++i) {
    const bool halves = shape.style == ASHLAR_ROPE_HALF;
    double& x = values[size_t(halves ? i : 2 * i)];
    double& y = values[size_t(halves ? i + half : 2 * i + 1)];
    const float angle = static_cast<float>(position) * problem.inv_freq(i);
    const std::complex<double> turned =
        std::complex(x, y) * std::polar(double{shape.rope_scale}, double{angle});
    x = turned.real(), y = turned.imag();
  }
  return {values.begin(), values.end()};
}

TEST_F(ReferenceTest, QkvPrepareNormsRotatesAndStores) {
  for (DType kv_dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3}) {
    for (int i = 0; i < 8; ++i) {
      QkvShape shape;
      shape.layout = kLayouts[random_.Int(0, 5)];
      shape.kv_dtype = kv_dtype;
      shape.block_tokens = static_cast<int>(random_.Int(1, 20));
      shape.head_dim = 2 * static_cast<int>(random_.Int(2, 40));
      shape.kv_heads = 2;
      shape.q_heads = 4;
      shape.tokens = 12;
      shape.rotary_dim = i % 4 == 3 ? shape.head_dim / 4 * 2 : shape.head_dim;
      shape.style = i % 2 == 0 ? ASHLAR_ROPE_HALF : ASHLAR_ROPE_INTERLEAVED;
      shape.rope_scale = i < 4 ? 1 : 1.2f;
      shape.q_norm = i % 3 == 0, shape.k_norm = i % 3 != 1;
      const QkvCase problem(shape, random_);
      const QkvResult got = problem.Run(Reference());

      std::vector<float> q, k;
      std::vector<std::byte> cache = problem.cache();
      const int64_t element = Info(kv_dtype).bytes;
      const std::vector<float>& qkv = problem.qkv();
      for (int token = 0; token < shape.tokens; ++token) {
        const float* row = qkv.data() + token * problem.row();
        for (int head = 0; head < shape.q_heads + shape.kv_heads; ++head) {
          const bool of_k = head >= shape.q_heads;
          const std::vector<float> values =
              NaiveHead(problem, row + head * shape.head_dim, problem.position(token), of_k);
          if (!of_k) q.insert(q.end(), values.begin(), values.end());
          const int64_t at = of_k ? problem.EntryAt(token, head - shape.q_heads) : -1;
          if (at < 0) continue;
          const float* value = row + (head + shape.kv_heads) * shape.head_dim;
          for (int d = 0; d < shape.head_dim; ++d) {
            // A rounding boundary may fall between two ways to compute K: take the stored one when
            // it is as near as the format can be.
            const float stored = Load(kv_dtype, got.cache.data() + at + d * element);
            const float exact = values[size_t(d)];
            const double step = kv_dtype == DType::kF32    ? 0
                                : kv_dtype == DType::kF16  ? 0x1p-11
                                : kv_dtype == DType::kBF16 ? 0x1p-8
                                                           : 0x1p-4;
            const double least = kv_dtype == DType::kF8E4M3 ? 0x1p-10 : 3e-6;
            EXPECT_NEAR(stored, exact, step * 1.01 * std::fabs(exact) + least) << shape.text();
            Store(kv_dtype, stored, cache.data() + at + d * element);
            Store(kv_dtype, value[d], cache.data() + at + (shape.head_dim + d) * element);
          }
        }
      }
      ExpectWithin("reference", "naive qkv_prepare", shape.text(), got.q, q,
                   std::vector<double>(q.size(), 3e-6));
      EXPECT_TRUE(SameBits(got.cache, cache)) << shape.text();
    }
  }
}

// Every kind of value that a conversion to 16 or 8 bits can meet, written as V.
TEST_F(ReferenceTest, StoresNearestNarrowFloat) {
  std::vector<float> values = {
      0,        -0.0f,      65504,    65519,        65520,          1e38f,          0x1p-24f,
      0x1p-25f, 0x1.8p-25f, 0x1p-14f, 0x1.ffep-15f, 1.00048828125f, 1.00146484375f, 3.4e38f,
      448,      464,        465,      480,          0x1p-10f,       0x1.8p-9f,      -500};
  while (values.size() < 4096) {
    values.push_back(std::ldexp(random_.Normal(), static_cast<int>(random_.Int(-30, 18))));
    // Halfway between two neighbours.
    const auto code = static_cast<uint16_t>(random_.Int(0, 0x7bfe));
    values.push_back((Decode(kHalf, code) + Decode(kHalf, static_cast<uint16_t>(code + 1))) / 2);
    const auto byte = static_cast<uint8_t>(random_.Int(0, 0x7d));
    values.push_back((DecodeF8(byte) + DecodeF8(static_cast<uint8_t>(byte + 1))) / 2);
  }
  const auto dim = static_cast<int32_t>(values.size());
  std::vector<float> qkv(3 * values.size(), 1.0f), q(values.size());
  std::copy(values.begin(), values.end(), qkv.end() - dim);
  const int32_t position = 0;
  const int64_t slot = 0;
  for (DType type : {DType::kF16, DType::kBF16, DType::kF8E4M3}) {
    const int element = Info(type).bytes;
    std::vector<std::byte> cache(values.size() * 4);
    ashlar_qkv_prepare args{};
    args.qkv = ToC(Tensor::Of(qkv.data(), DType::kF32, {1, 3 * dim}));
    args.q_out = ToC(Tensor::Of(q.data(), DType::kF32, {1, 1, dim}));
    args.positions = &position;
    args.slots = &slot;
    args.kv = {cache.data(), 4 * dim, 4 * dim, 4 * dim, 1, static_cast<ashlar_dtype>(type), 1, 1,
               dim,          dim};
    ASSERT_TRUE(Reference().QkvPrepare(args).ok());
    for (int32_t i = 0; i < dim; ++i) {
      const float stored = Load(type, cache.data() + element * (dim + i));
      ASSERT_EQ(stored, Rounded(type, values[size_t(i)])) << values[size_t(i)];
      ASSERT_EQ(std::signbit(stored), std::signbit(values[size_t(i)]));
    }
  }
}

TEST_F(ReferenceTest, NormsAndActivationsFollowTheirFormulas) {
  const int64_t n = 3, cols = 77;
  const std::vector<float> x = random_.Normals(n * cols, 3), weight = random_.Normals(cols);
  std::vector<float> want, got(x.size());
  for (int64_t i = 0; i < n; ++i) {
    double squares = 0;
    for (int64_t c = 0; c < cols; ++c) squares += std::pow(double{x[size_t(i * cols + c)]}, 2);
    for (int64_t c = 0; c < cols; ++c) {
      want.push_back(
          static_cast<float>(double{x[size_t(i * cols + c)]} / std::sqrt(squares / cols + 1e-5) *
                             double{weight[size_t(c)]}));
    }
  }
  const auto matrix = [](const std::vector<float>& values, int64_t rows, int64_t columns) {
    return Tensor::Of(const_cast<float*>(values.data()), DType::kF32, {rows, columns});
  };
  ASSERT_TRUE(Reference()
                  .RmsNorm(matrix(got, n, cols), matrix(x, n, cols),
                           Tensor::Of(const_cast<float*>(weight.data()), DType::kF32, {cols}),
                           1e-5f)
                  .ok());
  // eps is a float: 1e-5f differs from 1e-5 in the eighth digit.
  ExpectWithin("reference", "naive rms_norm", "", got, want, Rounding(want, 1e-6));

  // Known values: silu(1) = 1 / (1 + 1/e), gelu_tanh(1) = 0.841191990608...
  const std::vector<float> gate_up = {1, -2, 0, 2, 3, 5};
  std::vector<float> out(3);
  ASSERT_TRUE(
      Reference().GatedActivation(matrix(out, 1, 3), matrix(gate_up, 1, 6), ASHLAR_SILU).ok());
  EXPECT_FLOAT_EQ(out[0], 2 * 0.7310585786300049f);
  EXPECT_FLOAT_EQ(out[1], 3 * -0.2384058440442351f);
  EXPECT_EQ(out[2], 0.0f);
  ASSERT_TRUE(
      Reference().GatedActivation(matrix(out, 1, 3), matrix(gate_up, 1, 6), ASHLAR_GELU_TANH).ok());
  EXPECT_FLOAT_EQ(out[0], 2 * 0.8411919906082768f);
  EXPECT_FLOAT_EQ(out[1], 3 * -0.04540230591222494f);
}

}  // namespace
}  // namespace ashlar::testing
