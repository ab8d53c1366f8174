// Stands in on the host executor for what one architecture carries out in one launch, so that what
// is held back for it is checked there too.
#include <algorithm>
#include <cmath>
#include <vector>

#include "gpu/attention_rows.h"
#include "gpu/number.h"
#include "gpu/platform.h"
#include "gpu/qkv_prepare.h"

namespace ashlar::gpu_kernels {
namespace {

// Prepares as ever, then attends key by key.
class HostStep final : public FusedStep {
 public:
  bool Takes(const ashlar_qkv_prepare& a) const override { return a.q_out.dtype == ASHLAR_BF16; }

  gpu::Error Launch(gpu::Stream stream, const ashlar_qkv_prepare& prepare,
                    const AttentionParams& p) override {
    gpu::Facts facts;
    (void)gpu::ReadFacts(0, &facts);
    const gpu::Error error = LaunchPrepare(facts, stream, prepare);
    for (int head = 0; head < p.args.q.shape[1] && p.args.context[0] > 0; ++head) Attend(p, head);
    return error;
  }

 private:
  static void Attend(const AttentionParams& p, int head) {
    const int context = p.args.context[0], dim = p.args.kv.head_dim;
    const int oldest = RowTile::Oldest(p, context - 1);
    const CacheWalk walk = WalkOf(p, 0, head / p.group);
    const auto entry = [&](int key) { return walk.Entry(key, walk.table[walk.Index(key)]); };
    std::vector<float> scores, sums(static_cast<size_t>(dim));
    float top = -INFINITY, weight = 0;
    for (int key = oldest; key < context; ++key) {
      float score = 0;
      for (int i = 0; i < dim; ++i) {
        score += LoadAs(p.args.q.dtype, p.args.q.data, head * dim + i) *
                 LoadAs(p.args.kv.dtype, entry(key), i);
      }
      scores.push_back(score * p.scale_log2);
      top = std::max(top, scores.back());
    }
    for (int key = oldest; key < context; ++key) {
      const float own = std::exp2(scores[static_cast<size_t>(key - oldest)] - top);
      weight += own;
      for (int i = 0; i < dim; ++i) {
        sums[static_cast<size_t>(i)] += own * LoadAs(p.args.kv.dtype, entry(key), dim + i);
      }
    }
    for (int i = 0; i < dim; ++i) {
      StoreAs(p.args.out.dtype, p.args.out.data, head * dim + i,
              sums[static_cast<size_t>(i)] / weight);
    }
  }
};

}  // namespace

std::unique_ptr<FusedStep> OpenFusedStep(int) { return std::make_unique<HostStep>(); }

}  // namespace ashlar::gpu_kernels
