#include "plan/validate.h"

#include <gtest/gtest.h>

#include <set>

#include "support/plan_builders.h"

namespace ashlar {
namespace {

using testing::AnyRow;
using testing::CpuTarget;
using testing::CudaDevice;
using testing::Exact;
using testing::TargetOf;

AttentionRequest FullRequest() {
  AttentionRequest request;
  request.heads = 9;
  request.kv_heads = 3;
  request.head_dim = request.head_dim_v = 64;
  return request;
}

std::vector<RefusalReason> ReasonsOf(const AttentionRow& row, const AttentionRequest& request,
                                     const Target& target = CpuTarget()) {
  std::vector<RefusalReason> reasons;
  for (const Refusal& refusal : Validate(row, request, target)) reasons.push_back(refusal.reason);
  return reasons;
}

std::vector<RefusalReason> Only(RefusalReason reason) { return {reason}; }

TEST(Validate, TakesWhatTheRowSupports) {
  EXPECT_TRUE(Validate(AnyRow("A"), FullRequest(), CpuTarget()).empty());
}

TEST(Validate, HeadSizeByListOrMultiple) {
  AttentionRow row = AnyRow("A");
  row.head_sizes = {64, 128};
  AttentionRequest request = FullRequest();
  EXPECT_TRUE(ReasonsOf(row, request).empty());
  request.head_dim = 80;
  EXPECT_EQ(ReasonsOf(row, request), Only(RefusalReason::kHeadSize));
  EXPECT_EQ(Validate(row, request, CpuTarget())[0].detail, "head size 80: A needs 64 or 128");
  row.head_sizes.clear();
  row.head_multiple = 32;
  EXPECT_EQ(Validate(row, request, CpuTarget())[0].detail,
            "head size 80: A needs a multiple of 32");
  row.head_multiple = 16;
  EXPECT_TRUE(ReasonsOf(row, request).empty());
}

TEST(Validate, Types) {
  AttentionRow row = AnyRow("A");
  row.dtypes = {DType::kBF16};
  EXPECT_EQ(ReasonsOf(row, FullRequest()), Only(RefusalReason::kDType));
  row = AnyRow("A");
  row.kv_dtypes = {DType::kF32};
  std::vector<Refusal> refusals = Validate(row, FullRequest(), CpuTarget());
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_EQ(refusals[0].detail, "KV in bfloat16: A takes float32");
  EXPECT_EQ(refusals[0].counterfactual, "kv.dtype: float32");
}

TEST(Validate, BlockOnlyWhenStated) {
  AttentionRequest request = FullRequest();
  AttentionRow row = AnyRow("A");
  EXPECT_TRUE(ReasonsOf(row, request).empty());
  request.block_tokens = 24;
  std::vector<Refusal> refusals = Validate(row, request, CpuTarget());
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_EQ(refusals[0].detail, "block 24: A needs a multiple of 16");
  EXPECT_EQ(refusals[0].counterfactual, "kv.blockSize: 16 or 32");
  // Exact kernel blocks split a larger manager block.
  row.kernel_blocks = {Exact(64)};
  request.block_tokens = 128;
  EXPECT_TRUE(ReasonsOf(row, request).empty());
  request.block_tokens = 32;
  EXPECT_EQ(ReasonsOf(row, request), Only(RefusalReason::kBlockSize));
}

TEST(Validate, LatentMustMatchBothWays) {
  AttentionRow row = AnyRow("A");
  row.mla = true;
  EXPECT_EQ(ReasonsOf(row, FullRequest()), Only(RefusalReason::kNonMla));
  row.mla = false;
  row.kinds = {KvKind::kMla};
  AttentionRequest request = FullRequest();
  request.kind = KvKind::kMla;
  EXPECT_EQ(ReasonsOf(row, request), Only(RefusalReason::kMla));
}

TEST(Validate, CapabilityOnlyInItsOwnUnit) {
  AttentionRow row = AnyRow("A", {Exact(16)}, "cuda");
  row.capability_unit = CapabilityUnit::kCuda;
  row.capability_min = 90;
  row.capability_max = 99;
  auto on = [&](uint32_t value) {
    return ReasonsOf(row, FullRequest(), TargetOf(CudaDevice(value), {"cuda"}));
  };
  EXPECT_TRUE(on(90).empty());
  EXPECT_EQ(on(80), Only(RefusalReason::kCapability));
  EXPECT_EQ(on(100), Only(RefusalReason::kCapability));
  row.capability_max = 0;
  EXPECT_TRUE(on(120).empty());
  row.capability_unit = CapabilityUnit::kGfx;  // 0x942 says nothing about a CUDA device
  row.capability_min = 0x942;
  EXPECT_TRUE(on(80).empty());
}

TEST(Validate, CpuCapabilityIsASetOfInstructions) {
  AttentionRow row = AnyRow("A");
  row.capability_unit = CapabilityUnit::kCpu;
  row.capability_min = kAvx2;
  EXPECT_TRUE(ReasonsOf(row, FullRequest()).empty());
  row.capability_min = kAvx2 | kAvx512;
  EXPECT_EQ(ReasonsOf(row, FullRequest()), Only(RefusalReason::kCapability));
}

TEST(Validate, KindAndWindowAreTwoReasons) {
  AttentionRequest request = FullRequest();
  request.kind = KvKind::kSliding;
  request.window = 128;
  EXPECT_EQ(ReasonsOf(testing::CpuPaged(), request),
            (std::vector{RefusalReason::kKind, RefusalReason::kWindow}));
  EXPECT_EQ(Validate(testing::CpuPaged(), request, CpuTarget())[0].detail,
            "attention type sliding_window: CPU_PAGED does full_attention");
}

TEST(Validate, Features) {
  AttentionRow row = AnyRow("A");
  row.batch_invariant = row.kv_connector = false;
  row.layouts = {KvLayout::kLHBNC};
  AttentionRequest request = FullRequest();
  request.sinks = request.non_causal = request.batch_invariant = request.kv_connector = true;
  request.layout = KvLayout::kLBNHC;
  EXPECT_EQ(ReasonsOf(row, request),
            (std::vector{RefusalReason::kSinks, RefusalReason::kNonCausal,
                         RefusalReason::kBatchInvariance, RefusalReason::kKvConnector,
                         RefusalReason::kLayout}));
}

TEST(Validate, AnotherDeviceIsTheOnlyReason) {
  AttentionRow row = AnyRow("A", {Exact(64)}, "cuda");
  row.head_sizes = {128};
  Target target = CpuTarget();
  EXPECT_EQ(ReasonsOf(row, FullRequest(), target), Only(RefusalReason::kOtherDevice));
  EXPECT_EQ(Validate(row, FullRequest(), target)[0].counterfactual, "a machine with a cuda device");
  target.present.push_back("cuda");
  EXPECT_EQ(Validate(row, FullRequest(), target)[0].counterfactual, "platform: cuda");
}

TEST(Validate, CollectsEveryReasonInOrder) {
  AttentionRow row = AnyRow("A");
  row.head_multiple = 48;
  row.dtypes = {DType::kF16};
  row.kv_dtypes = {DType::kF16};
  row.kinds = {KvKind::kFull};
  row.window = row.batch_invariant = false;
  row.built_for = {"avx512"};
  AttentionRequest request = FullRequest();
  request.kind = KvKind::kSliding;
  request.window = 64;
  request.block_tokens = 24;
  request.batch_invariant = true;
  EXPECT_EQ(ReasonsOf(row, request),
            (std::vector{RefusalReason::kHeadSize, RefusalReason::kDType, RefusalReason::kKvDType,
                         RefusalReason::kBlockSize, RefusalReason::kKind, RefusalReason::kWindow,
                         RefusalReason::kBatchInvariance, RefusalReason::kNotBuilt}));
}

TEST(BuiltFor, CapabilityIsNotRunnability) {
  AttentionRow row = AnyRow("A", {Exact(16)}, "cuda");
  EXPECT_TRUE(BuiltFor(row, CudaDevice(121).capability));
  row.built_for = {"sm_80", "sm_90a"};
  EXPECT_TRUE(BuiltFor(row, CudaDevice(80).capability));
  EXPECT_TRUE(BuiltFor(row, CudaDevice(86).capability));
  EXPECT_TRUE(BuiltFor(row, CudaDevice(90).capability));
  EXPECT_FALSE(BuiltFor(row, CudaDevice(121).capability));
  EXPECT_FALSE(BuiltFor(row, CudaDevice(75).capability));
  row.built_for = {"sm_120a"};
  EXPECT_FALSE(BuiltFor(row, CudaDevice(121).capability));
  row.built_for = {"gfx942"};
  EXPECT_TRUE(BuiltFor(row, {CapabilityUnit::kGfx, 0x942, {"gfx942"}}));
  EXPECT_FALSE(BuiltFor(row, {CapabilityUnit::kGfx, 0x950, {"gfx950"}}));
}

TEST(RefusalReason, HasALabelAndATextOfItsOwn) {
  std::set<std::string_view> labels, texts;
  for (int i = 0; i <= static_cast<int>(RefusalReason::kPluginMissing); ++i) {
    EXPECT_TRUE(labels.insert(Label(static_cast<RefusalReason>(i))).second);
    EXPECT_TRUE(texts.insert(Text(static_cast<RefusalReason>(i))).second);
  }
  EXPECT_EQ(Label(RefusalReason::kHeadSize), "head_size");
  EXPECT_EQ(Text(RefusalReason::kHeadSize), "head_size not supported");
}

}  // namespace
}  // namespace ashlar
