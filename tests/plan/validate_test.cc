#include "plan/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <type_traits>

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
  for (RefusalReason reason : Validate(row, request, target)) reasons.push_back(reason);
  return reasons;
}

// The first reason in words.
Explanation Words(const AttentionRow& row, const AttentionRequest& request,
                  const Target& target = CpuTarget()) {
  Refusals refusals = Validate(row, request, target);
  return refusals.empty() ? Explanation{} : Explain(*refusals.begin(), row, request, target);
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
  EXPECT_EQ(Words(row, request).detail, "head size 80: A needs 64 or 128");
  row.head_sizes.clear();
  row.head_multiple = 32;
  EXPECT_EQ(Words(row, request).detail, "head size 80: A needs a multiple of 32");
  row.head_multiple = 16;
  EXPECT_TRUE(ReasonsOf(row, request).empty());
}

TEST(Validate, Types) {
  AttentionRow row = AnyRow("A");
  row.dtypes = {DType::kBF16};
  EXPECT_EQ(ReasonsOf(row, FullRequest()), Only(RefusalReason::kDType));
  row = AnyRow("A");
  row.kv_dtypes = {DType::kF32};
  EXPECT_EQ(ReasonsOf(row, FullRequest()), Only(RefusalReason::kKvDType));
  EXPECT_EQ(Words(row, FullRequest()).detail, "KV in bfloat16: A takes float32");
  EXPECT_EQ(Words(row, FullRequest()).counterfactual, "kv.dtype: float32");
}

TEST(Validate, BlockOnlyWhenStated) {
  AttentionRequest request = FullRequest();
  AttentionRow row = AnyRow("A");
  EXPECT_TRUE(ReasonsOf(row, request).empty());
  request.block_tokens = 24;
  EXPECT_EQ(ReasonsOf(row, request), Only(RefusalReason::kBlockSize));
  EXPECT_EQ(Words(row, request).detail, "block 24: A needs a multiple of 16");
  EXPECT_EQ(Words(row, request).counterfactual, "kv.blockSize: 16 or 32");
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
  EXPECT_EQ(Words(testing::CpuPaged(), request).detail,
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

TEST(Validate, FeaturesOfLargerDeployments) {
  AttentionRow row = AnyRow("A");
  AttentionRequest request = FullRequest();
  request.mm_prefix = request.sparse = request.head_scales = request.prefix_window = true;
  request.pcp = request.dcp = request.adaptive_verification = true;
  row.host_query_lengths = true;
  EXPECT_EQ(ReasonsOf(row, request),
            (std::vector{RefusalReason::kMmPrefix, RefusalReason::kSparse,
                         RefusalReason::kHeadScales, RefusalReason::kPrefixWindow,
                         RefusalReason::kPcp, RefusalReason::kDcp, RefusalReason::kQueryLengths}));
  row.mm_prefix = row.sparse = row.head_scales = row.prefix_window = row.pcp = row.dcp = true;
  row.host_query_lengths = false;
  EXPECT_TRUE(ReasonsOf(row, request).empty());
  EXPECT_EQ(ReasonsOf(row, FullRequest()), Only(RefusalReason::kNonSparse));
}

TEST(Validate, NonCausalLatentAttentionIsNotSplitOverContext) {
  AttentionRow row = AnyRow("A");
  row.kinds = {KvKind::kMla};
  row.mla = row.non_causal = row.dcp = true;
  AttentionRequest request = FullRequest();
  request.kind = KvKind::kMla;
  request.non_causal = request.dcp = true;
  EXPECT_EQ(ReasonsOf(row, request), Only(RefusalReason::kNonCausalMlaDcp));
  request.dcp = false;
  EXPECT_TRUE(ReasonsOf(row, request).empty());
}

// Each reason in words, for a row and a request that have it.
TEST(Validate, EveryReasonHasWords) {
  AttentionRow row = AnyRow("A", {Exact(64)});
  row.kinds = {KvKind::kCross};
  row.head_sizes = {128};
  row.dtypes = row.kv_dtypes = {DType::kF16};
  row.window = row.batch_invariant = row.kv_connector = false;
  row.host_query_lengths = true;
  row.capability_unit = CapabilityUnit::kCpu;
  row.capability_min = kAmx;
  row.layouts = {KvLayout::kLBHNC};
  row.built_for = {"avx512"};
  AttentionRequest request = FullRequest();
  request.window = 64;
  request.block_tokens = 24;
  request.layout = KvLayout::kBLHNC;
  for (bool AttentionRequest::*wish :
       {&AttentionRequest::sinks, &AttentionRequest::non_causal, &AttentionRequest::batch_invariant,
        &AttentionRequest::kv_connector, &AttentionRequest::sparse, &AttentionRequest::mm_prefix,
        &AttentionRequest::head_scales, &AttentionRequest::prefix_window, &AttentionRequest::pcp,
        &AttentionRequest::dcp, &AttentionRequest::adaptive_verification})
    request.*wish = true;
  Refusals refusals = Validate(row, request, CpuTarget());
  EXPECT_EQ(refusals.size(), 20);
  std::set<std::string> details;
  for (RefusalReason reason : refusals) {
    Explanation words = Explain(reason, row, request, CpuTarget());
    EXPECT_THAT(words.detail, ::testing::HasSubstr("A")) << Label(reason);
    EXPECT_TRUE(details.insert(words.detail).second) << words.detail;
  }
}

static_assert(std::is_trivially_copyable_v<Refusals>, "judging a row allocates nothing");

TEST(Refusals, AreASetReadInOrder) {
  Refusals refusals = {RefusalReason::kPluginMissing, RefusalReason::kHeadSize};
  refusals.Add(RefusalReason::kLayout);
  refusals.Add(RefusalReason::kLayout);
  std::vector<RefusalReason> read;
  for (RefusalReason reason : refusals) read.push_back(reason);
  EXPECT_EQ(read, (std::vector{RefusalReason::kHeadSize, RefusalReason::kLayout,
                               RefusalReason::kPluginMissing}));
  EXPECT_EQ(refusals.size(), 3);
  EXPECT_TRUE(refusals.Has(RefusalReason::kLayout));
  EXPECT_FALSE(refusals.Has(RefusalReason::kDType));
  EXPECT_TRUE(Refusals().empty());
}

TEST(Validate, AnotherDeviceIsTheOnlyReason) {
  AttentionRow row = AnyRow("A", {Exact(64)}, "cuda");
  row.head_sizes = {128};
  Target target = CpuTarget();
  EXPECT_EQ(ReasonsOf(row, FullRequest(), target), Only(RefusalReason::kOtherDevice));
  EXPECT_EQ(Words(row, FullRequest(), target).counterfactual, "a machine with a cuda device");
  target.present.push_back("cuda");
  EXPECT_EQ(Words(row, FullRequest(), target).counterfactual, "platform: cuda");
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
  row.built_for = {"sm_86"};
  EXPECT_FALSE(BuiltFor(row, CudaDevice(80).capability));
  EXPECT_TRUE(BuiltFor(row, CudaDevice(89).capability));
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
