#include "engine/self_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "engine/sampler.h"
#include "engine/self_test_case.h"

namespace ashlar {
namespace {

// Both sides read the same bytes of K and V, so only the arithmetic differs. A kernel may round
// queries and weights to the KV dtype before it multiplies: 2^-24, 2^-11 or 2^-8 each, and a
// softmax over scores of unit variance lets such errors grow a few times. Sums are in f32 at least.
// A wrong block, head, mask or scale is an error near 1.
double ToleranceOf(DType kv_dtype) {
  switch (kv_dtype) {
    case DType::kF32:
      return 1e-4;
    case DType::kF16:
      return 5e-3;
    default:
      return 3e-2;
  }
}

// Lengths around the edges of kernel blocks and of the window.
std::vector<SelfTestQuery> DecodeShapes(int64_t block, int64_t window) {
  std::vector<SelfTestQuery> shapes;
  for (int64_t context : {int64_t{1}, block - 1, block, block + 1, 3 * block + 5}) {
    if (context > 0) shapes.push_back({1, context});
  }
  if (window > 0) {
    for (int64_t context : {window, window + 1, window + block + 3}) shapes.push_back({1, context});
  }
  return shapes;
}

std::vector<SelfTestQuery> PrefillShapes(int64_t block, int64_t window) {
  std::vector<SelfTestQuery> shapes = {
      {5, 5}, {block + 3, block + 3}, {7, 2 * block + 8}, {1, block + 2}, {17, 3 * block + 17}};
  if (window > 0) shapes.push_back({11, window + 14});
  return shapes;
}

// NaN when either side is not finite anywhere.
double ErrorOf(const std::vector<float>& out, const std::vector<float>& expected) {
  if (!AllFinite(out) || !AllFinite(expected)) return std::numeric_limits<double>::quiet_NaN();
  double difference = 0, largest = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    difference = std::max(difference, std::abs(double{out[i]} - expected[i]));
    largest = std::max(largest, std::abs(double{expected[i]}));
  }
  return difference / largest;
}

// The first of the dtypes that a query may have, the widest first.
std::optional<DType> QueryDType(const AttentionRow& row) {
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    if (std::ranges::find(row.dtypes, dtype) != row.dtypes.end()) return dtype;
  }
  return std::nullopt;
}

int ReferenceRow(const Device& reference, KvKind kind) {
  const auto& rows = reference.plugin().rows();
  for (size_t i = 0; i < rows.size(); ++i) {
    if (std::ranges::find(rows[i].kinds, kind) != rows[i].kinds.end()) return static_cast<int>(i);
  }
  return -1;
}

Problem CannotTest(const SelfTestResult& result, std::string why) {
  return {fmt::format("selfTest: group {} attn {}", result.group, result.attn), std::move(why),
          "a row with a reference to compare it with", "report this: the row cannot be tested"};
}

Status TestOne(const Plan& plan, const KvGroup& group, const AttentionGroup& attention,
               const Device& device, const Device& reference, SelfTestResult& result) {
  int row = device.plugin().RowIndex(attention.row);
  if (row < 0) return CannotTest(result, "the plugin has no row " + attention.row);
  std::optional<DType> q_dtype = QueryDType(device.plugin().rows()[static_cast<size_t>(row)]);
  if (!q_dtype) return CannotTest(result, attention.row + " takes no float queries");
  int truth = ReferenceRow(reference, group.kind);
  if (truth < 0) return CannotTest(result, fmt::format("no reference for {}", Name(group.kind)));

  int64_t launches = device.RowLaunches(row);
  int64_t block = group.kernel_block_tokens, window = attention.layer.window;
  for (const auto& queries : {DecodeShapes(block, window), PrefillShapes(block, window)}) {
    SelfTestCase problem(plan, group, attention, queries, *q_dtype);
    auto out = problem.Run(device, row, *q_dtype);
    if (!out.ok()) return out.problems();
    auto expected = problem.Run(reference, truth, DType::kF32);
    if (!expected.ok()) return expected.problems();
    double error = ErrorOf(*out, *expected);
    if (!(error <= result.error)) result.error = error;
    if (std::isnan(error)) return Done{};
  }
  if (device.RowLaunches(row) < launches + 2) {
    return CannotTest(result, fmt::format("row {} was not the one that ran", attention.row));
  }
  return Done{};
}

}  // namespace

Result<std::vector<SelfTestResult>> RunSelfTest(const Plan& plan, const Device& device,
                                                const Device& reference) {
  std::vector<SelfTestResult> results;
  for (const KvGroup& group : plan.groups) {
    for (const AttentionGroup& attention : group.attention) {
      SelfTestResult result{group.name, attention.index, attention.row, 0,
                            ToleranceOf(group.dtype)};
      auto tested = TestOne(plan, group, attention, device, reference, result);
      if (!tested.ok()) return tested.problems();
      results.push_back(std::move(result));
    }
  }
  return results;
}

}  // namespace ashlar
