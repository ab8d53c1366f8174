#include <fmt/format.h>
#include <gtest/gtest.h>

#include "conformance/qkv_case.h"
#include "conformance/row_shapes.h"
#include "support/tensor_float.h"

namespace ashlar::testing {
namespace {

class QkvPrepare : public PluginTest {
 protected:
  QkvShape RandomShape(const AttentionRow& row, KvLayout layout, DType kv_dtype);
};

QkvShape QkvPrepare::RandomShape(const AttentionRow& row, KvLayout layout, DType kv_dtype) {
  QkvShape shape;
  shape.layout = layout;
  shape.kv_dtype = kv_dtype;
  shape.block_tokens = random_.Pick(BlocksOf(row));
  shape.head_dim = random_.Pick(HeadSizesOf(row));
  shape.kv_heads = static_cast<int>(random_.Int(1, 3));
  shape.q_heads = shape.kv_heads * static_cast<int>(random_.Chance(0.1) ? 40 : random_.Int(1, 5));
  shape.tokens = static_cast<int>(random_.Int(1, 40));
  shape.rotary_dim = shape.head_dim / 2 * 2;
  if (random_.Chance(0.2)) shape.rotary_dim = shape.head_dim / 4 * 2;
  if (random_.Chance(0.15)) shape.rotary_dim = 0;
  shape.style = random_.Chance(0.5) ? ASHLAR_ROPE_HALF : ASHLAR_ROPE_INTERLEAVED;
  shape.rope_scale = random_.Chance(0.7) ? 1.0f : 1.2f;
  shape.q_norm = random_.Chance(0.5);
  shape.k_norm = random_.Chance(0.5);
  return shape;
}

// Norm, cosine and sine in float32: 2e-5 of the largest value of the head.
double HeadTolerance(const float* head, int dim) {
  double largest = 0;
  for (int i = 0; i < dim; ++i) largest = std::fmax(largest, std::fabs(double{head[i]}));
  return 2e-5 * largest + 1e-30;
}

// K as floats with the tolerance of one head, and one step of the cache's type where a value lies
// near a rounding boundary. V is only converted, so its bits are the reference's.
void CompareCaches(const std::string& plugin, const QkvCase& problem,
                   const std::vector<std::byte>& got, const std::vector<std::byte>& want) {
  const QkvShape& shape = problem.shape();
  const int64_t element = Info(shape.kv_dtype).bytes;
  const double step = shape.kv_dtype == DType::kF32    ? 0
                      : shape.kv_dtype == DType::kF16  ? 0x1p-10
                      : shape.kv_dtype == DType::kBF16 ? 0x1p-7
                                                       : 0x1p-3;
  const double least = shape.kv_dtype == DType::kF8E4M3 ? 0x1p-9 : 0;
  std::vector<std::byte> rest_got = got, rest_want = want;
  for (int token = 0; token < shape.tokens; ++token) {
    for (int head = 0; head < shape.kv_heads; ++head) {
      const int64_t at = problem.EntryAt(token, head);
      if (at < 0) continue;
      std::vector<float> got_k, want_k;
      for (int i = 0; i < shape.head_dim; ++i) {
        got_k.push_back(Load(shape.kv_dtype, got.data() + at + i * element));
        want_k.push_back(Load(shape.kv_dtype, want.data() + at + i * element));
      }
      const double of_head = HeadTolerance(want_k.data(), shape.head_dim);
      std::vector<double> tolerance;
      for (float value : want_k) {
        tolerance.push_back(of_head + step * std::fabs(double{value}) + least);
      }
      ExpectWithin(plugin, fmt::format("qkv_prepare k {}", Info(shape.kv_dtype).name), shape.text(),
                   got_k, want_k, tolerance);
      for (auto* rest : {&rest_got, &rest_want}) {
        std::fill_n(rest->begin() + at, shape.head_dim * element, std::byte{});
      }
    }
  }
  EXPECT_TRUE(SameBits(rest_got, rest_want))
      << plugin << " qkv_prepare " << shape.text() << ": V differs, or something else was written";
}

TEST_P(QkvPrepare, AgreesForEveryLayoutAndType) {
  for (const AttentionRow& row : plugin().rows()) {
    if (!Testable(row)) continue;
    for (KvLayout layout : LayoutsOf(row)) {
      for (DType kv_dtype : row.kv_dtypes) {
        for (int i = 0; i < 2; ++i) {
          const QkvCase problem(RandomShape(row, layout, kv_dtype), random_);
          const QkvResult want = problem.Run(Reference());
          const int dim = problem.shape().head_dim;
          std::vector<double> tolerance;
          for (size_t at = 0; at < want.q.size(); at += static_cast<size_t>(dim)) {
            tolerance.insert(tolerance.end(), static_cast<size_t>(dim),
                             HeadTolerance(want.q.data() + at, dim));
          }
          for (const DeviceOptions& options : Variants(plugin())) {
            const QkvResult got = problem.Run(*Open(options));
            ExpectWithin(plugin().name(), "qkv_prepare q", problem.shape().text(), got.q, want.q,
                         tolerance);
            CompareCaches(plugin().name(), problem, got.cache, want.cache);
          }
        }
      }
    }
  }
}

ASHLAR_PLUGIN_SUITE(QkvPrepare);

}  // namespace
}  // namespace ashlar::testing
