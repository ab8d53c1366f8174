// Attention at every level against plain sums, and its independence of batch, chunks and threads.
#include <cmath>

#include "common/shapes.h"
#include "half.h"
#include "levels.h"
#include "ops.h"

namespace ashlar::cpu {
namespace {

class Attends : public LevelTest {
 protected:
  static constexpr int32_t kBlock = 16;

  // A cache of one sequence with its blocks in random order; entries not in use are NaN.
  void MakeCache(int32_t tokens, int32_t kv_heads, int32_t dim, ashlar_dtype dtype) {
    const int32_t used = (tokens + kBlock - 1) / kBlock, blocks = used + 3;
    const int64_t element = FloatBytes(dtype);
    table_.resize(blocks);
    for (int32_t i = 0; i < blocks; ++i) table_[i] = i;
    std::shuffle(table_.begin(), table_.end(), random_);
    cache_.assign(int64_t{blocks} * kv_heads * kBlock * 2 * dim * element, 0xff);
    kv_ = {cache_.data(),
           kv_heads * kBlock * 2 * dim * element,
           kBlock * 2 * dim * element,
           2 * dim * element,
           blocks,
           dtype,
           kBlock,
           kv_heads,
           dim,
           dim};
    keys_.clear();
    for (int32_t t = 0; t < tokens; ++t)
      for (int32_t h = 0; h < kv_heads; ++h) {
        const std::vector<float> entry = Normals(2 * dim);
        uint8_t* at = cache_.data() + table_[t / kBlock] * kv_.block_stride + h * kv_.head_stride +
                      t % kBlock * kv_.token_stride;
        device_.kernels.from_floats(at, dtype, entry.data(), 2 * dim);
        std::vector<float> rounded(2 * dim);
        device_.kernels.to_floats(rounded.data(), at, dtype, 2 * dim);
        keys_.insert(keys_.end(), rounded.begin(), rounded.end());
      }
  }

  // The last `count` of `context` tokens as queries.
  std::vector<float> Run(std::vector<float> q, int32_t count, int32_t context, int32_t q_heads,
                         int32_t window) {
    const int32_t dim = kv_.head_dim;
    std::vector<float> out(q.size(), NAN);
    const int32_t start[] = {0, count};
    const auto heads = [&](std::vector<float>& data) {
      return ashlar_tensor{
          data.data(), ASHLAR_F32, 3, {count, q_heads, dim}, {q_heads * dim * 4, dim * 4, 4}};
    };
    const ashlar_attention args{heads(q), heads(out), kv_, table_.data(), (int64_t)table_.size(),
                                start,    &context,   1,   count,         context,
                                0.125f,   window};
    EXPECT_EQ(Attention(device_, args), ASHLAR_OK) << LastError();
    return out;
  }

  std::vector<double> Plain(const float* q, int32_t position, int32_t head, int32_t q_heads,
                            int32_t window) const {
    const int32_t dim = kv_.head_dim, kv_heads = kv_.kv_heads;
    const int32_t first = window > 0 ? std::max(0, position - window + 1) : 0;
    std::vector<double> out(dim);
    double total = 0;
    for (int32_t t = first; t <= position; ++t) {
      const float* entry =
          keys_.data() + (int64_t{t} * kv_heads + head / (q_heads / kv_heads)) * 2 * dim;
      double score = 0;
      for (int32_t i = 0; i < dim; ++i) score += double{q[i]} * entry[i];
      const double weight = std::exp(score * 0.125);
      total += weight;
      for (int32_t i = 0; i < dim; ++i) out[i] += weight * entry[dim + i];
    }
    for (double& v : out) v /= total;
    return out;
  }

  std::vector<int32_t> table_;
  std::vector<uint8_t> cache_;
  ashlar_kv_view kv_{};
  std::vector<float> keys_;  // [tokens, kv_heads, 2 * dim] as the cache rounds them
};

TEST_P(Attends, AgreesWithPlainSums) {
  for (ashlar_dtype dtype : {ASHLAR_F32, ASHLAR_F16, ASHLAR_BF16})
    for (int32_t window : {0, 1, 20, 300}) {
      const int32_t context = static_cast<int32_t>(Pick(1, 700));
      const int32_t count = static_cast<int32_t>(Pick(1, std::min(context, 40)));
      const int32_t kv_heads = 2, q_heads = kv_heads * static_cast<int32_t>(Pick(1, 5));
      const int32_t dim = 16 * static_cast<int32_t>(Pick(1, 6));
      MakeCache(context, kv_heads, dim, dtype);
      const std::vector<float> q = Normals(int64_t{count} * q_heads * dim);
      const std::vector<float> out = Run(q, count, context, q_heads, window);
      for (int32_t i = 0; i < count; ++i)
        for (int32_t h = 0; h < q_heads; ++h) {
          const int64_t at = (int64_t{i} * q_heads + h) * dim;
          const std::vector<double> want =
              Plain(q.data() + at, context - count + i, h, q_heads, window);
          for (int32_t d = 0; d < dim; ++d)
            ASSERT_NEAR(out[at + d], want[d], 2e-5)
                << "dtype " << dtype << " window " << window << " context " << context << " query "
                << i << " head " << h;
        }
    }
}

TEST_P(Attends, TakesMoreQueryHeadsThanOneCallHolds) {
  const int32_t context = 40, count = 3, q_heads = 71, dim = 16;
  MakeCache(context, 1, dim, ASHLAR_F32);
  const std::vector<float> q = Normals(int64_t{count} * q_heads * dim);
  const std::vector<float> out = Run(q, count, context, q_heads, 0);
  for (int32_t i = 0; i < count; ++i)
    for (int32_t h = 0; h < q_heads; ++h) {
      const int64_t at = (int64_t{i} * q_heads + h) * dim;
      const std::vector<double> want = Plain(q.data() + at, context - count + i, h, q_heads, 0);
      for (int32_t d = 0; d < dim; ++d) ASSERT_NEAR(out[at + d], want[d], 2e-5) << i << " " << h;
    }
}

TEST_P(Attends, AQueryHasTheSameBitsAloneAndInAPrompt) {
  for (int32_t window : {0, 50}) {
    const int32_t context = 600, count = 90, q_heads = 3, dim = 64;
    MakeCache(context, 1, dim, ASHLAR_F16);
    const std::vector<float> q = Normals(int64_t{count} * q_heads * dim);
    const std::vector<float> prompt = Run(q, count, context, q_heads, window);
    for (int32_t i = 0; i < count; i += 7) {
      const int64_t at = int64_t{i} * q_heads * dim;
      const std::vector<float> alone = Run({q.begin() + at, q.begin() + at + q_heads * dim}, 1,
                                           context - count + i + 1, q_heads, window);
      ASSERT_EQ(memcmp(alone.data(), prompt.data() + at, alone.size() * 4), 0)
          << "query " << i << " window " << window;
    }
  }
}

TEST_P(Attends, IgnoresTableEntriesBehindTheWindow) {
  MakeCache(400, 1, 32, ASHLAR_F32);
  const std::vector<float> q = Normals(32);
  const std::vector<float> want = Run(q, 1, 400, 1, 33);
  for (int32_t i = 0; i < (400 - 33) / kBlock; ++i) table_[i] = -1;
  EXPECT_EQ(Run(q, 1, 400, 1, 33), want);
}

TEST_P(Attends, RefusesABlockOutsideTheCache) {
  MakeCache(40, 1, 16, ASHLAR_F32);
  table_[2] = static_cast<int32_t>(kv_.blocks);
  std::vector<float> q = Normals(16), out(16);
  const int32_t start[] = {0, 1}, context = 40;
  const ashlar_tensor t = {q.data(), ASHLAR_F32, 3, {1, 1, 16}, {64, 64, 4}};
  ashlar_tensor to = t;
  to.data = out.data();
  const ashlar_attention args{
      t, to, kv_, table_.data(), (int64_t)table_.size(), start, &context, 1, 1, 40, 1.0f, 0};
  EXPECT_EQ(Attention(device_, args), ASHLAR_FAILED);
  EXPECT_STREQ(LastError(), "attention: sequence 0 has block 6 of 6 at entry 2");
}

ASHLAR_LEVEL_SUITE(Attends, false);

}  // namespace
}  // namespace ashlar::cpu
