#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/attention_case.h"
#include "conformance/row_shapes.h"

namespace ashlar::testing {
namespace {

class Attention : public PluginTest {
 protected:
  std::vector<Sequence> RandomSequences(int longest, int block_tokens);
  int RandomWindow(const AttentionRow& row, int block_tokens);
  // Every value of each list comes up before one comes up twice.
  std::vector<AttentionShape> ShapesOf(const AttentionRow& row);
};

// The error allowed in an output, which is a weighted mean of values, relative to the largest value
// of the case:
//   float32 cache: float32 scores and sums; 3e-5 with scores up to about 20.
//   16-bit caches: a kernel may bring the probabilities to the cache's type, within 2^-8 (bfloat16)
//     or 2^-11 (float16) of each, and that much of the result; and the queries too, which moves a
//     score of deviation 2, and so the logarithm of a weight, by as much again. Where the queries
//     fit the type exactly only the first remains.
double Tolerance(DType type, bool exact_queries) {
  if (type == DType::kF32) return 3e-5;
  const double step = type == DType::kF16 ? 0x1p-11 : 0x1p-8;
  return exact_queries ? 2 * step : 4 * step;
}

std::vector<Sequence> Attention::RandomSequences(int longest, int block_tokens) {
  std::vector<Sequence> sequences;
  const int64_t count = random_.Int(1, 5);
  for (int64_t i = 0; i < count; ++i) {
    Sequence sequence;
    sequence.context = static_cast<int>(random_.Int(1, random_.Chance(0.5) ? 20 : longest));
    if (random_.Chance(0.3)) {  // at a block's edge or next to it
      const int64_t blocks = random_.Int(1, std::max(1, longest / block_tokens));
      sequence.context = static_cast<int>(blocks * block_tokens + random_.Int(0, 2));
    }
    const double kind = random_.Unit();
    sequence.queries = 1;  // decode
    if (kind > 0.4)
      sequence.queries = std::min(sequence.context,  // a chunk
                                  static_cast<int>(random_.Int(1, 24)));
    if (kind > 0.8 && sequence.context <= 40)
      sequence.queries = sequence.context;  // a whole prompt
    sequences.push_back(sequence);
  }
  return sequences;
}

int Attention::RandomWindow(const AttentionRow& row, int block_tokens) {
  const bool sliding = Takes(row, KvKind::kSliding);
  if (!sliding || (Takes(row, KvKind::kFull) && random_.Chance(0.5))) return 0;
  const int64_t block = block_tokens;
  return static_cast<int>(random_.Pick<int64_t>({1, std::max<int64_t>(1, block - 1), block,
                                                 block + 1, 2 * block, random_.Int(1, 120), 1000}));
}

template <class T>
class Cycle {
 public:
  Cycle(std::vector<T> values, Random& random) : values_(std::move(values)) {
    random.Shuffle(values_);
  }
  T Next() { return values_[at_++ % values_.size()]; }
  size_t size() const { return values_.size(); }

 private:
  std::vector<T> values_;
  size_t at_ = 0;
};

std::vector<AttentionShape> Attention::ShapesOf(const AttentionRow& row) {
  std::vector<int> ratios = {33, 48, 71};  // more than a kernel is likely to hold at once
  for (int ratio = 1; ratio <= 16; ++ratio) ratios.push_back(ratio);
  Cycle<int> head_sizes(HeadSizesOf(row), random_), blocks(BlocksOf(row), random_);
  Cycle<int> ratio(ratios, random_), kv_heads({1, 2, 3}, random_);
  std::vector<AttentionShape> shapes;
  for (KvLayout layout : LayoutsOf(row)) {
    for (DType kv_dtype : row.kv_dtypes) {
      for (bool exact : {false, true}) {
        AttentionShape shape;
        shape.layout = layout;
        shape.kv_dtype = kv_dtype;
        shape.exact_queries = exact;
        shape.block_tokens = blocks.Next();
        shape.head_dim = head_sizes.Next();
        shape.kv_heads = kv_heads.Next();
        shape.query_ratio = ratio.Next();
        shape.window = RandomWindow(row, shape.block_tokens);
        shape.sequences = RandomSequences(100, shape.block_tokens);
        shapes.push_back(shape);
      }
    }
  }
  return shapes;
}

TEST_P(Attention, AgreesForEveryLayoutTypeBlockHeadSizeAndRatio) {
  const int reference_row = Reference().plugin().RowIndex("REFERENCE");
  int rows = 0;
  for (size_t row = 0; row < plugin().rows().size(); ++row) {
    const AttentionRow& what = plugin().rows()[row];
    if (!Testable(what)) continue;
    ++rows;
    for (const AttentionShape& shape : ShapesOf(what)) {
      const AttentionCase problem(shape, random_);
      const std::vector<float> want = problem.Run(Reference(), reference_row);
      double largest = 0;
      for (float value : want) largest = std::max(largest, std::fabs(double{value}));
      const std::vector<double> tolerance(
          want.size(), std::max(1.0, largest) * Tolerance(shape.kv_dtype, shape.exact_queries));
      for (const DeviceOptions& options : Variants(plugin())) {
        const auto device = Open(options);
        ExpectWithin(plugin().name(), fmt::format("{} {}", what.name, Info(shape.kv_dtype).name),
                     fmt::format("{} threads {}", shape.text(), options.threads),
                     problem.Run(*device, static_cast<int>(row)), want, tolerance);
      }
    }
  }
  EXPECT_GT(rows, 0) << "no row of " << plugin().name() << " was run";
}

TEST_P(Attention, AgreesForLongContexts) {
  const int reference_row = Reference().plugin().RowIndex("REFERENCE");
  for (size_t row = 0; row < plugin().rows().size(); ++row) {
    const AttentionRow& what = plugin().rows()[row];
    if (!Testable(what)) continue;
    for (DType kv_dtype : what.kv_dtypes) {
      AttentionShape shape;
      shape.layout = random_.Pick(LayoutsOf(what));
      shape.kv_dtype = kv_dtype;
      shape.block_tokens = random_.Pick(BlocksOf(what));
      shape.head_dim = HeadSizesOf(what)[HeadSizesOf(what).size() / 2];
      shape.query_ratio = 3;
      shape.window = RandomWindow(what, shape.block_tokens);
      shape.sequences = {{static_cast<int>(random_.Int(1500, 2500)), 1},
                         {static_cast<int>(random_.Int(600, 900)), 5},
                         {1, 1}};
      const AttentionCase problem(shape, random_);
      const std::vector<float> want = problem.Run(Reference(), reference_row);
      const std::vector<double> tolerance(want.size(), Tolerance(kv_dtype, false));
      const auto device = Open();
      ExpectWithin(plugin().name(), fmt::format("{} {}", what.name, Info(kv_dtype).name),
                   shape.text(), problem.Run(*device, static_cast<int>(row)), want, tolerance);
    }
  }
}

// BK-03: what a row claims is what its kernel does, size by size.
TEST_P(Attention, RunsEveryBlockSizeThatItClaims) {
  const int reference_row = Reference().plugin().RowIndex("REFERENCE");
  const auto device = Open();
  for (size_t row = 0; row < plugin().rows().size(); ++row) {
    const AttentionRow& what = plugin().rows()[row];
    if (!Testable(what)) continue;
    for (int block : BlocksOf(what)) {
      AttentionShape shape;
      shape.layout = LayoutsOf(what)[0];
      shape.kv_dtype = what.kv_dtypes[0];
      shape.block_tokens = block;
      shape.head_dim = HeadSizesOf(what)[0];
      shape.window = Takes(what, KvKind::kFull) ? 0 : block + 3;
      shape.sequences = {{2 * block + 1, 1}, {block, 1}, {block + 6, 5}};
      const AttentionCase problem(shape, random_);
      const std::vector<float> want = problem.Run(Reference(), reference_row);
      const std::vector<double> tolerance(want.size(), Tolerance(what.kv_dtypes[0], false));
      ExpectWithin(plugin().name(), what.name, shape.text(),
                   problem.Run(*device, static_cast<int>(row)), want, tolerance);
    }
  }
}

// RC-1. BK-14 does not apply: a plan has one device, and every tensor of it lies there.
// The row that is asked for is the one that is counted, so a plan that names another row is seen to
// run another kernel.
TEST_P(Attention, CountsTheRowThatRan) {
  const auto device = Open();
  const auto rows = static_cast<int>(plugin().rows().size());
  for (int row = 0; row < rows; ++row) {
    const AttentionRow& what = plugin().rows()[static_cast<size_t>(row)];
    if (!Testable(what)) continue;
    std::vector<int64_t> before;
    for (int other = 0; other < rows; ++other) before.push_back(device->RowLaunches(other));
    AttentionShape shape;
    shape.layout = LayoutsOf(what)[0];
    shape.kv_dtype = what.kv_dtypes[0];
    shape.block_tokens = BlocksOf(what)[0];
    shape.head_dim = HeadSizesOf(what)[0];
    shape.window = Takes(what, KvKind::kFull) ? 0 : 8;
    shape.sequences = {{9, 1}};
    (void)AttentionCase(shape, random_).Run(*device, row);
    for (int other = 0; other < rows; ++other) {
      EXPECT_EQ(device->RowLaunches(other) - before[static_cast<size_t>(other)], other == row)
          << what.name;
    }
  }
}

TEST_P(Attention, RefusesWhatTheRowDoesNotTake) {
  const auto device = Open();
  for (size_t row = 0; row < plugin().rows().size(); ++row) {
    if (!Testable(plugin().rows()[row])) continue;
    const Guarded<float> memory(*device, std::vector<float>(64));
    ashlar_attention args{};
    args.q = args.out = ToC(Tensor::Of(memory.data(), DType::kF32, {1, 1, 16}));
    args.kv.base = memory.data();
    args.kv.dtype = ASHLAR_I32;  // no row takes it
    args.kv.blocks = args.kv.kv_heads = 1;
    args.kv.block_tokens = 1;
    args.kv.head_dim = args.kv.head_dim_v = 16;
    const Status ran = device->Attention(static_cast<int>(row), args);
    ASSERT_FALSE(ran.ok());
    EXPECT_NE(Text(ran.problems()).find("attention: "), std::string::npos);
  }
}

ASHLAR_PLUGIN_SUITE(Attention);

}  // namespace
}  // namespace ashlar::testing
