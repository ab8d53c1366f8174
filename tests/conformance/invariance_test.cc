// With open.invariant a token's result has the same bits alone and within any batch.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "conformance/attention_case.h"
#include "conformance/qkv_case.h"
#include "conformance/row_shapes.h"
#include "conformance/weights.h"

namespace ashlar::testing {
namespace {

class Invariance : public PluginTest {
 protected:
  void SetUp() override {
    PluginTest::SetUp();
    if (plugin().table().invariant_ops == 0) {
      GTEST_SKIP() << plugin().name() << " does not claim batch-invariant ops";
    }
    device_ = Open({0, 3, true});
  }

  // Runs `op` on all rows of x at once and on each alone.
  template <class Op>
  void ExpectRowsAlone(const std::string& what, const std::vector<float>& x, int64_t rows, Op op) {
    const std::vector<float> together = op(rows, x);
    const auto in = static_cast<int64_t>(x.size()) / rows;
    const auto out = static_cast<int64_t>(together.size()) / rows;
    for (int64_t i = 0; i < rows; ++i) {
      const std::vector<float> alone = op(1, {x.begin() + i * in, x.begin() + (i + 1) * in});
      const std::vector<float> within(together.begin() + i * out, together.begin() + (i + 1) * out);
      ASSERT_TRUE(SameBits(alone, within)) << plugin().name() << " " << what << ": row " << i
                                           << " of " << rows << " (--seed " << RunSeed() << ")";
    }
  }

  std::unique_ptr<Device> device_;
};

TEST_P(Invariance, Matmul) {
  for (DType type : kWeightTypes) {
    for (int64_t m : {2, 3, 5, 8, 16, 17, 33, 70}) {
      const RandomStack stack({type}, {random_.Int(1, 50)}, Info(type).elements * random_.Int(1, 4),
                              random_);
      const std::vector<float> bias =
          random_.Chance(0.3) ? random_.Normals(stack.rows()) : std::vector<float>();
      ExpectRowsAlone("matmul " + stack.text(), random_.Normals(m * stack.cols()), m,
                      [&](int64_t rows, const std::vector<float>& x) {
                        return RunMatmul(*device_, stack, rows, x, bias, true);
                      });
    }
  }
}

TEST_P(Invariance, NormsAndActivations) {
  for (int64_t m : {2, 7, 40}) {
    const int64_t cols = 2 * random_.Int(1, 300);
    const std::vector<float> weight = random_.Normals(cols);
    const auto matrix = [](const Guarded<float>& values, int64_t rows, int64_t cols) {
      return Tensor::Of(values.data(), DType::kF32, {rows, cols});
    };
    const Guarded<float> w(*device_, weight);
    const Tensor w_tensor = Tensor::Of(w.data(), DType::kF32, {cols});
    const std::vector<float> input = random_.Normals(m * cols);
    ExpectRowsAlone("rms_norm", input, m, [&](int64_t rows, const std::vector<float>& x) {
      const Guarded<float> values(*device_, x);
      const Tensor tensor = matrix(values, rows, cols);
      (void)device_->RmsNorm(tensor, tensor, w_tensor, 1e-5f).value();
      return values.Read("x");
    });
    for (ashlar_activation activation : {ASHLAR_SILU, ASHLAR_GELU_TANH}) {
      ExpectRowsAlone("gated_activation", input, m, [&](int64_t rows, const std::vector<float>& x) {
        const Guarded<float> values(*device_, x);
        const Guarded<float> out(*device_,
                                 std::vector<float>(static_cast<size_t>(rows * cols / 2)));
        (void)device_
            ->GatedActivation(matrix(out, rows, cols / 2), matrix(values, rows, cols), activation)
            .value();
        return out.Read("out");
      });
    }
  }
}

TEST_P(Invariance, QkvPrepare) {
  for (int i = 0; i < 20; ++i) {
    const AttentionRow& row = random_.Pick(plugin().rows());
    if (!Testable(row)) continue;
    QkvShape shape;
    shape.layout = random_.Pick(LayoutsOf(row));
    shape.kv_dtype = random_.Pick(row.kv_dtypes);
    shape.block_tokens = random_.Pick(BlocksOf(row));
    shape.head_dim = random_.Pick(HeadSizesOf(row));
    shape.kv_heads = 2;
    shape.q_heads = 6;
    shape.tokens = static_cast<int>(random_.Int(2, 30));
    shape.rotary_dim = shape.head_dim / 2 * 2;
    shape.q_norm = shape.k_norm = random_.Chance(0.5);
    const QkvCase problem(shape, random_);
    const QkvResult together = problem.Run(*device_);
    const int64_t q_row = int64_t{shape.q_heads} * shape.head_dim;
    const int64_t entry = 2 * shape.head_dim * Info(shape.kv_dtype).bytes;
    for (int token = 0; token < shape.tokens; ++token) {
      const QkvResult alone = problem.RunTokenAlone(*device_, token);
      ASSERT_TRUE(SameBits(
          alone.q, {together.q.begin() + token * q_row, together.q.begin() + (token + 1) * q_row}))
          << shape.text() << " token " << token;
      for (int head = 0; head < shape.kv_heads; ++head) {
        const int64_t at = problem.EntryAt(token, head);
        if (at < 0) continue;
        ASSERT_TRUE(std::equal(alone.cache.begin() + at, alone.cache.begin() + at + entry,
                               together.cache.begin() + at))
            << shape.text() << " token " << token << " head " << head;
      }
    }
  }
}

TEST_P(Invariance, AttentionOfRowsThatClaimIt) {
  for (size_t row = 0; row < plugin().rows().size(); ++row) {
    const AttentionRow& what = plugin().rows()[row];
    if (!Testable(what) || !what.batch_invariant) continue;
    for (int i = 0; i < 12; ++i) {
      AttentionShape shape;
      shape.layout = random_.Pick(LayoutsOf(what));
      shape.kv_dtype = random_.Pick(what.kv_dtypes);
      shape.block_tokens = random_.Pick(BlocksOf(what));
      shape.head_dim = random_.Pick(HeadSizesOf(what));
      shape.kv_heads = static_cast<int>(random_.Int(1, 2));
      shape.query_ratio = static_cast<int>(random_.Chance(0.1) ? 40 : random_.Int(1, 8));
      const bool window =
          !Takes(what, KvKind::kFull) || (Takes(what, KvKind::kSliding) && random_.Chance(0.5));
      const int64_t edge = random_.Chance(0.3) ? shape.block_tokens : random_.Int(1, 80);
      shape.window = window ? static_cast<int>(edge) : 0;
      const int prompt = static_cast<int>(random_.Int(2, 40));
      shape.sequences = {{prompt, prompt},
                         {static_cast<int>(random_.Int(1, 300)), 1},
                         {static_cast<int>(random_.Int(100, 200)), 9}};
      const AttentionCase problem(shape, random_);
      ASSERT_TRUE(SameBits(problem.Run(*device_, static_cast<int>(row)),
                           problem.RunTokensAlone(*device_, static_cast<int>(row))))
          << what.name << " " << shape.text() << " (--seed " << RunSeed() << ")";
    }
  }
}

ASHLAR_PLUGIN_SUITE(Invariance);

}  // namespace
}  // namespace ashlar::testing
