#include "plan/rank.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "plan/select.h"
#include "support/plan_builders.h"

namespace ashlar {
namespace {

using testing::BasicSpec;
using testing::CpuTarget;
using testing::CudaDevice;
using ::testing::ElementsAre;
using testing::TargetOf;

Target Cuda(uint32_t capability) { return TargetOf(CudaDevice(capability), {"cuda"}); }

Target Hip(std::string gfx, uint32_t value) {
  DeviceInfo device;
  device.platform = "hip";
  device.product = "Test GPU";
  device.capability = {CapabilityUnit::kGfx, value, {std::move(gfx)}};
  return TargetOf(device, {"hip"});
}

AttentionRequest Half(KvKind kind = KvKind::kFull, int head = 128) {
  AttentionRequest request;
  request.kind = kind;
  request.heads = 32, request.kv_heads = 8;
  request.head_dim = request.head_dim_v = head;
  request.window = kind == KvKind::kSliding ? 128 : 0;
  request.dtype = request.kv_dtype = DType::kBF16;
  return request;
}

// Our own rows as if every kernel had landed: what is left is the order of the rules.
std::vector<AttentionRow> LandedRows() {
  std::vector<AttentionRow> rows = KnownRows();
  for (AttentionRow& row : rows) row.verification = Verification::kTested;
  return rows;
}

Selection Choose(const AttentionRequest& request, const Target& target) {
  static const Spec spec = BasicSpec();
  static const Catalogue catalogue{LandedRows()};
  return Select(catalogue, request, target, {}, kRankRules, "full_attention", spec.origins);
}

std::string Chosen(const AttentionRequest& request, const Target& target) {
  Selection selection = Choose(request, target);
  return selection.row == nullptr ? "" : selection.row->name;
}

// Rows of the target's own platforms, first tried first.
std::vector<std::string> Order(const AttentionRequest& request, const Target& target) {
  std::vector<std::string> names;
  const std::vector<AttentionRow> rows = KnownRows();
  for (const AttentionRow* row : RankRows(rows, request, target, kRankRules)) {
    if (std::count(target.platforms.begin(), target.platforms.end(), row->platform) > 0)
      names.push_back(row->name);
  }
  return names;
}

TEST(RankRules, NameEveryKnownRowOnce) {
  std::set<std::string_view> named;
  for (const RankRule& rule : kRankRules) {
    for (std::string_view row : rule.rows) {
      if (!row.empty()) named.insert(row);
    }
  }
  std::set<std::string_view> known;
  for (const AttentionRow& row : KnownRows()) known.insert(row.name);
  EXPECT_EQ(named, known);
}

TEST(RankRules, OrderTheRowsOfEveryPlatform) {
  EXPECT_EQ(Chosen(Half(), Cuda(90)), "CUDA_HOPPER");
  EXPECT_EQ(Chosen(Half(KvKind::kSliding), Cuda(90)), "CUDA_HOPPER");
  for (uint32_t capability : {80u, 86u, 89u, 100u, 103u, 120u, 121u})
    EXPECT_EQ(Chosen(Half(), Cuda(capability)), "CUDA_PAGED") << capability;
  EXPECT_EQ(Chosen(Half(KvKind::kFull, 80), Cuda(90)), "CUDA_PAGED");
  EXPECT_EQ(Chosen(Half(KvKind::kMla, 576), Cuda(90)), "CUDA_MLA");
  EXPECT_EQ(Chosen(Half(), Hip("gfx942", 0x942)), "HIP_MFMA");
  EXPECT_EQ(Chosen(Half(), Hip("gfx90a", 0x90a)), "HIP_MFMA");
  EXPECT_EQ(Chosen(Half(KvKind::kMla, 576), Hip("gfx942", 0x942)), "HIP_MLA");
}

TEST(RankRules, RefuseADeviceThatNoCodeIsFor) {
  EXPECT_EQ(Chosen(Half(), Cuda(75)), "");
  EXPECT_EQ(Chosen(Half(), Cuda(110)), "");  // no code for this major
  EXPECT_EQ(Chosen(Half(), Hip("gfx906", 0x906)), "");
}

TEST(RankRules, VerifiedRowsComeFirst) {
  std::vector<std::string> order = Order(Half(), Cuda(90));
  EXPECT_EQ(std::set<std::string>(order.begin(), order.end()),
            (std::set<std::string>{"CUDA_HOPPER", "CUDA_PAGED", "CUDA_CUDNN", "CUDA_MLA"}));
  auto level = [](const std::string& name) {
    for (const AttentionRow& row : KnownRows()) {
      if (row.name == name) return row.verification;
    }
    return Verification::kPlanned;
  };
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end(),
                             [&](const auto& a, const auto& b) { return level(a) < level(b); }));
}

TEST(RankRules, LatentAttentionOnTheHostIsOpDriven) {
  EXPECT_EQ(Choose(Half(KvKind::kMla, 576), CpuTarget()).outcome, SelectionOutcome::kOpDriven);
}

TEST(RankRules, ReferenceIsLast) {
  AttentionRequest request = Half(KvKind::kFull, 64);
  request.dtype = DType::kF32;
  EXPECT_THAT(Order(request, CpuTarget()), ElementsAre("CPU_PAGED", "CPU_WINDOW", "REFERENCE"));
}

}  // namespace
}  // namespace ashlar
