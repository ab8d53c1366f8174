// The named vectors of selection, and the ranks, against the catalogue.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "catalogue/vllm.h"
#include "catalogue/vllm_assume.h"
#include "support/plan_builders.h"

namespace ashlar {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

VllmFacts Cuda(int major, int minor = 0) {
  VllmFacts facts;
  facts.major = major;
  facts.minor = minor;
  return facts;
}

DeviceInfo HipDevice(std::string gfx) {
  DeviceInfo device;
  device.platform = "hip";
  device.capability.unit = CapabilityUnit::kGfx;
  if (!gfx.empty()) device.capability.names = {std::move(gfx)};
  return device;
}

VllmFacts Rocm(std::string gfx, bool aiter) {
  VllmAssume assume;
  assume.facts.aiter = assume.facts.aiter_on = aiter;
  return VllmFactsOf(HipDevice(std::move(gfx)), assume).value();
}

VllmRequest Dense(int head = 128) {
  VllmRequest request;
  request.head_size = head;
  return request;
}

VllmRequest Latent(bool sparse = false) {
  VllmRequest request = Dense(576);
  request.mla = true;
  request.sparse = sparse;
  return request;
}

VllmReasons Why(const VllmChoice& choice, std::string_view backend) {
  for (const VllmCandidate& candidate : choice.candidates) {
    if (candidate.backend == backend) return candidate.reasons;
  }
  ADD_FAILURE() << backend << " is no candidate";
  return {};
}

std::vector<std::string_view> Valid(const VllmChoice& choice) {
  std::vector<std::string_view> names;
  for (const VllmCandidate& candidate : choice.candidates) {
    if (candidate.reasons.empty()) names.push_back(candidate.backend);
  }
  return names;
}

VllmReason Plain(RefusalReason reason) { return {reason, {}}; }

TEST(VllmSelect, HopperDense) {  // SV-01
  EXPECT_EQ(VllmSelect(Cuda(9), Dense(), "").chosen, "FLASH_ATTN");
}

TEST(VllmSelect, BlackwellDenseWithAndWithoutFlashInfer) {  // SV-02
  VllmFacts facts = Cuda(10);
  EXPECT_EQ(VllmSelect(facts, Dense(), "").chosen, "FLASHINFER");
  facts.flashinfer_cubin = facts.nvcc = false;  // imports, and cannot be built: it still wins
  EXPECT_EQ(VllmSelect(facts, Dense(), "").chosen, "FLASHINFER");
  facts.flashinfer = false;
  VllmChoice choice = VllmSelect(facts, Dense(), "");
  EXPECT_EQ(choice.chosen, "FLASH_ATTN");
  EXPECT_THAT(Why(choice, "FLASHINFER"), ElementsAre(Plain(RefusalReason::kLoadFailure)));
}

TEST(VllmSelect, WorkstationBlackwellLatent) {  // SV-03
  VllmChoice choice = VllmSelect(Cuda(12, 1), Latent(), "");
  EXPECT_EQ(choice.chosen, "TRITON_MLA");
  EXPECT_THAT(Valid(choice), ElementsAre("TRITON_MLA"));
  EXPECT_THAT(Why(choice, "FLASHINFER_MLA_SPARSE_SM120"),
              Contains(Plain(RefusalReason::kNonSparse)));
  EXPECT_THAT(Why(choice, "FLASHINFER_MLA_SPARSE_SM120"),
              Not(Contains(Plain(RefusalReason::kSparse))));
}

TEST(VllmSelect, WorkstationBlackwellSparse) {  // SV-04
  VllmRequest request = Latent(true);
  request.kv = VllmKvDType::kFp8;
  request.block_tokens = 256;
  EXPECT_EQ(VllmSelect(Cuda(12, 1), request, "").chosen, "FLASHINFER_MLA_SPARSE_SM120");
}

TEST(VllmSelect, TheSparseTailFollowsHeadsAndCache) {  // SV-05, with J1
  auto tail = [](VllmRequest request) {
    std::vector<std::string_view> names = VllmCandidates(Cuda(10), request);
    return std::vector<std::string_view>(names.begin() + 6, names.end());
  };
  VllmRequest request = Latent(true);
  EXPECT_THAT(tail(request), ElementsAre("FLASHMLA_SPARSE", "FLASHINFER_MLA_SPARSE"));
  request.query_heads = 17;
  EXPECT_THAT(tail(request), ElementsAre("FLASHMLA_SPARSE", "FLASHINFER_MLA_SPARSE"));
  request.query_heads = 16;
  EXPECT_THAT(tail(request),
              ElementsAre("FLASH_ATTN_MLA_SPARSE_FA4", "FLASHINFER_MLA_SPARSE", "FLASHMLA_SPARSE"));
  EXPECT_EQ(VllmSelect(Cuda(10), request, "").chosen, "FLASH_ATTN_MLA_SPARSE_FA4");
  VllmFacts without = Cuda(10);
  without.flashinfer = false;
  EXPECT_EQ(VllmSelect(without, request, "").chosen, "FLASHINFER_MLA_SPARSE");
  request.query_heads = 17;
  request.kv = VllmKvDType::kFp8;
  EXPECT_THAT(tail(request), ElementsAre("FLASHINFER_MLA_SPARSE", "FLASHMLA_SPARSE"));
}

TEST(VllmSelect, AForcedDenseRowRefusesSparse) {  // SV-06
  VllmChoice choice = VllmSelect(Cuda(9), Latent(true), "TRITON_MLA");
  EXPECT_EQ(choice.error, VllmError::kForcedInvalid);
  EXPECT_THAT(choice.forced_reasons, ElementsAre(Plain(RefusalReason::kSparse)));
}

TEST(VllmSelect, SinksOnAWorkstation) {  // SV-07, with J3
  VllmRequest request = Dense(64);
  request.sinks = true;
  VllmFacts facts = Cuda(12);
  facts.flashinfer_cubin = false;
  facts.nvcc = true;
  VllmChoice choice = VllmSelect(facts, request, "");
  EXPECT_EQ(choice.chosen, "TRITON_ATTN");
  EXPECT_THAT(Why(choice, "FLASH_ATTN"), ElementsAre(Plain(RefusalReason::kSinks)));
  EXPECT_THAT(Why(choice, "FLASHINFER"), ElementsAre(Plain(RefusalReason::kSinks)));
  facts.flashinfer_cubin = true;
  EXPECT_EQ(VllmSelect(facts, request, "").chosen, "FLASHINFER");
}

TEST(VllmSelect, FlashInferDeclaresWideHeads) {  // SV-08, with J2
  EXPECT_EQ(VllmSelect(Cuda(12), Dense(512), "FLASHINFER").chosen, "FLASHINFER");
}

TEST(VllmSelect, BatchInvarianceWithAConnectorOnRocm) {  // SV-09
  VllmRequest request = Dense();
  request.kv_connector = request.batch_invariant = true;
  VllmFacts facts = Rocm("gfx950", true);
  VllmChoice choice = VllmSelect(facts, request, "");
  EXPECT_EQ(choice.chosen, "TRITON_ATTN");
  EXPECT_THAT(Valid(choice), ElementsAre("TRITON_ATTN"));
  EXPECT_THAT(VllmCandidates(facts, request), Not(Contains("ROCM_ATTN")));
  for (std::string_view name :
       {"ROCM_AITER_FA", "ROCM_AITER_UNIFIED_ATTN", "TURBOQUANT", "ROCM_OCTAVE", "ULTRAQUANT"}) {
    EXPECT_THAT(Why(choice, name), Contains(Plain(RefusalReason::kBatchInvariance))) << name;
  }
  choice = VllmSelect(facts, request, "ROCM_AITER_FA");
  EXPECT_EQ(choice.error, VllmError::kForcedInvalid);
  EXPECT_THAT(choice.forced_reasons, ElementsAre(Plain(RefusalReason::kBatchInvariance)));
  request.batch_invariant = false;
  EXPECT_EQ(VllmSelect(facts, request, "").chosen, "ROCM_AITER_FA");
}

TEST(VllmSelect, AConnectorOnRocm) {  // SV-10
  VllmRequest request = Dense(96);    // not a head size of ROCM_AITER_FA, which would precede
  request.kv_connector = true;
  EXPECT_EQ(VllmSelect(Rocm("gfx942", true), request, "").chosen, "ROCM_AITER_UNIFIED_ATTN");
  EXPECT_EQ(VllmSelect(Rocm("gfx942", false), request, "").chosen, "TRITON_ATTN");
  VllmChoice choice = VllmSelect(Rocm("gfx942", true), request, "ROCM_ATTN");
  EXPECT_THAT(choice.forced_reasons, ElementsAre(Plain(RefusalReason::kKvConnector)));
}

TEST(VllmSelect, ABlockOfEightSuitsNobody) {  // SV-11
  VllmRequest request = Dense();
  request.block_tokens = 8;
  VllmChoice choice = VllmSelect(Cuda(9), request, "");
  EXPECT_EQ(choice.error, VllmError::kNoneValid);
  for (const VllmCandidate& candidate : choice.candidates)
    EXPECT_THAT(candidate.reasons, Contains(Plain(RefusalReason::kBlockSize))) << candidate.backend;
}

TEST(VllmSelect, FlashMlaTakesMultiplesOfSixtyFour) {  // SV-12, SV-13
  VllmRequest request = Latent();
  request.block_tokens = 32;
  VllmChoice choice = VllmSelect(Cuda(9), request, "FLASHMLA");
  EXPECT_THAT(choice.forced_reasons, ElementsAre(Plain(RefusalReason::kBlockSize)));
  request.block_tokens = 128;
  EXPECT_EQ(VllmSelect(Cuda(9), request, "FLASHMLA").chosen, "FLASHMLA");
  EXPECT_THAT(FindVllmRow("FLASHMLA", Cuda(9), request)->blocks[0], (BlockRule{64, false}));
}

TEST(VllmSelect, LatentOnCpuIsNeverDense) {  // SV-14
  VllmFacts facts;
  facts.platform = VllmPlatform::kCpu;
  EXPECT_EQ(VllmSelect(facts, Latent(), "").chosen, "CPU_MLA");
  facts.amx = true;
  EXPECT_EQ(VllmSelect(facts, Latent(), "").chosen, "AMX_MLA");
  EXPECT_EQ(VllmSelect(facts, Latent(), "CPU_MLA").chosen, "CPU_MLA");
  EXPECT_EQ(VllmSelect(facts, Latent(true), "").error, VllmError::kSparse);
}

TEST(VllmSelect, AnUnknownNameIsAnError) {  // SV-17
  EXPECT_EQ(VllmSelect(Cuda(9), Dense(), "FLASH_ATN").error, VllmError::kUnknownBackend);
}

TEST(VllmSelect, RowsThatValidateWithoutTheirPackage) {  // J5
  VllmFacts facts = Cuda(10);
  facts.flashinfer = false;
  VllmRequest request = Latent(true);
  EXPECT_TRUE(VllmSelect(facts, request, "FLASHINFER_MLA_SPARSE").forced_reasons.empty());
  EXPECT_EQ(VllmSelect(Rocm("gfx1100", false), request, "").chosen, "ROCM_AITER_MLA_SPARSE");
}

TEST(VllmSelect, APackedRunPassesOverAForcedRow) {  // J8
  VllmFacts facts = Rocm("gfx942", false);
  facts.run_kv = VllmKvDType::kTurboquantK8V4;
  VllmRequest request = Dense();
  request.kv = facts.run_kv;
  VllmChoice choice = VllmSelect(facts, request, "ROCM_ATTN");
  EXPECT_EQ(choice.chosen, "TURBOQUANT");
  EXPECT_EQ(choice.error, VllmError::kNone);
  request.kv = VllmKvDType::kAuto;  // a layer that is not packed
  choice = VllmSelect(facts, request, "");
  EXPECT_EQ(choice.chosen, "TRITON_ATTN");
  EXPECT_THAT(Why(choice, "ROCM_ATTN"),
              ElementsAre(VllmReason{RefusalReason::kLayout, "turboquant"}));
}

// --- every list of ranks

TEST(VllmCandidates, CudaDense) {
  for (const VllmFacts& facts : {Cuda(8), Cuda(9), Cuda(12)}) {
    EXPECT_THAT(
        VllmCandidates(facts, Dense()),
        ElementsAre("FLASH_ATTN", "FLASHINFER", "TRITON_ATTN", "FLEX_ATTENTION", "TURBOQUANT"));
  }
  EXPECT_THAT(
      VllmCandidates(Cuda(10), Dense()),
      ElementsAre("FLASHINFER", "FLASH_ATTN", "TRITON_ATTN", "FLEX_ATTENTION", "TURBOQUANT"));
  VllmRequest request = Dense();
  request.non_causal = true;
  EXPECT_EQ(VllmCandidates(Cuda(10), request).front(), "FLASH_ATTN");
  request.non_causal = false;
  request.mm_prefix = true;
  EXPECT_EQ(VllmCandidates(Cuda(9), request).front(), "TRITON_FLASH_ATTN");
  EXPECT_EQ(VllmCandidates(Cuda(10), request).front(), "TRITON_FLASHINFER");
  EXPECT_EQ(VllmCandidates(Cuda(12), request).front(), "FLASH_ATTN");
}

TEST(VllmCandidates, CudaLatent) {
  EXPECT_THAT(VllmCandidates(Cuda(10), Latent()),
              ElementsAre("FLASHINFER_MLA", "TOKENSPEED_MLA", "CUTLASS_MLA", "FLASH_ATTN_MLA",
                          "FLASHMLA", "TRITON_MLA", "FLASHMLA_SPARSE", "FLASHINFER_MLA_SPARSE"));
  EXPECT_THAT(VllmCandidates(Cuda(12), Latent()),
              ElementsAre("TRITON_MLA", "FLASHINFER_MLA_SPARSE_SM120"));
  EXPECT_THAT(
      VllmCandidates(Cuda(9), Latent()),
      ElementsAre("FLASH_ATTN_MLA", "FLASHMLA", "FLASHINFER_MLA", "TRITON_MLA",
                  "FLASH_ATTN_MLA_SPARSE", "FLASHMLA_SPARSE", "FLASHINFER_MLA_SPARSE_SM90"));
  VllmRequest wide = Latent();
  wide.head_size = 512;
  EXPECT_EQ(VllmCandidates(Cuda(8), wide)[4], "FLASHINFER_MLA_SPARSE_SM90");
}

TEST(VllmCandidates, RocmDense) {
  auto plain = ElementsAre("ROCM_ATTN", "TRITON_ATTN", "TURBOQUANT", "ROCM_OCTAVE", "ULTRAQUANT");
  for (std::string gfx : {"gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1151", "gfx1201"})
    EXPECT_THAT(VllmCandidates(Rocm(gfx, false), Dense()), plain) << gfx;
  for (std::string gfx : {"gfx90a", "gfx1100", "gfx1151"})
    EXPECT_THAT(VllmCandidates(Rocm(gfx, true), Dense()), plain) << gfx;
  VllmFacts package = Rocm("gfx942", true);
  EXPECT_THAT(VllmCandidates(package, Dense()),
              ElementsAre("ROCM_ATTN", "ROCM_AITER_FA", "ROCM_AITER_UNIFIED_ATTN", "TRITON_ATTN",
                          "TURBOQUANT", "ROCM_OCTAVE", "ULTRAQUANT"));
  package.aiter_on = false;  // the unified row needs only the package
  EXPECT_THAT(VllmCandidates(package, Dense()),
              ElementsAre("ROCM_ATTN", "ROCM_AITER_UNIFIED_ATTN", "TRITON_ATTN", "TURBOQUANT",
                          "ROCM_OCTAVE", "ULTRAQUANT"));
  EXPECT_EQ(VllmCandidates(Rocm("gfx1201", true), Dense()).front(), "ROCM_AITER_UNIFIED_ATTN");
}

TEST(VllmCandidates, RocmDropsTheSplitRow) {
  VllmRequest connector = Dense(), encoder = Dense();
  connector.kv_connector = true;
  encoder.model.emplace().encoder_decoder = true;
  for (const VllmRequest& request : {connector, encoder})
    EXPECT_THAT(VllmCandidates(Rocm("gfx90a", false), request), Not(Contains("ROCM_ATTN")));
}

TEST(VllmCandidates, RocmLatent) {
  EXPECT_THAT(VllmCandidates(Rocm("gfx942", true), Latent()),
              ElementsAre("ROCM_AITER_MLA", "TRITON_MLA", "ROCM_AITER_TRITON_MLA"));
  EXPECT_THAT(VllmCandidates(Rocm("gfx1100", true), Latent()), ElementsAre("TRITON_MLA"));
  EXPECT_THAT(VllmCandidates(Rocm("gfx90a", true), Latent(true)),
              ElementsAre("ROCM_AITER_MLA_SPARSE"));
}

TEST(VllmMlaPrefill, RanksByDimensions) {
  VllmPrefillRequest deepseek = {DType::kBF16, 128, 64, 128}, wide = {DType::kBF16, 192, 64, 256};
  EXPECT_EQ(VllmSelectMlaPrefill(Cuda(9), deepseek).chosen, "FLASH_ATTN");
  EXPECT_EQ(VllmSelectMlaPrefill(Cuda(10), deepseek).chosen, "FLASH_ATTN");
  EXPECT_EQ(VllmSelectMlaPrefill(Cuda(10), wide).chosen, "TRTLLM_RAGGED");
  EXPECT_EQ(VllmSelectMlaPrefill(Cuda(9), wide).chosen, "FLASH_ATTN");
  EXPECT_EQ(VllmSelectMlaPrefill(Cuda(10), {DType::kBF16, 96, 32, 96}).error,
            VllmError::kNoneValid);
}

TEST(VllmTables, NameOnlyRowsThatExist) {
  std::vector<std::string_view> known = VllmBackends();
  std::set<std::string_view> unique(known.begin(), known.end());
  EXPECT_EQ(unique.size(), known.size());
  for (const VllmFacts& facts : {Cuda(8), Cuda(9), Cuda(10), Cuda(12), Rocm("gfx942", true)}) {
    for (const VllmRequest& request : {Dense(), Latent(), Latent(true)}) {
      for (std::string_view name : VllmCandidates(facts, request)) {
        EXPECT_TRUE(unique.contains(name)) << name;
      }
    }
  }
}

// --- from our own values

TEST(ParseAssume, ReadsEverySwitch) {
  VllmAssume assume =
      ParseAssume("aiter=on,shuffle=on,connector=on,batchInvariant=on,flashinfer=off", "--assume")
          .value();
  EXPECT_TRUE(assume.facts.aiter && assume.facts.aiter_on && assume.facts.shuffle);
  EXPECT_TRUE(assume.connector && assume.batch_invariant);
  EXPECT_FALSE(assume.facts.flashinfer);
  EXPECT_EQ(ParseAssume("", "--assume").value(), VllmAssume{});
}

TEST(ParseAssume, NamesEveryMistake) {
  Result<VllmAssume> assume = ParseAssume("aitr=on,shuffle=yes,,flashinfer", "--assume");
  ASSERT_FALSE(assume.ok());
  const std::string text = Text(assume.problems());
  EXPECT_THAT(text, HasSubstr("--assume: \"aitr\" is no assumption: aiter, aiterPackage, "));
  EXPECT_THAT(text, HasSubstr("did you mean aiter?"));
  EXPECT_THAT(text, HasSubstr("--assume: \"shuffle=yes\" says neither on nor off: on or off; "
                              "write shuffle=on"));
  EXPECT_THAT(text, HasSubstr("--assume: \"\" is no assumption"));
  EXPECT_EQ(assume.problems().size(), 4u);
}

TEST(VllmFactsOf, ReadsTheDevice) {
  VllmFacts cuda = VllmFactsOf(testing::CudaDevice(121), {}).value();
  EXPECT_EQ(std::pair(cuda.major, cuda.minor), std::pair(12, 1));
  VllmFacts rocm = Rocm("gfx1151", false);
  EXPECT_EQ(std::pair(rocm.major, rocm.minor), std::pair(11, 5));
  EXPECT_EQ(std::pair(Rocm("gfx90a", false).major, Rocm("gfx90a", false).minor), std::pair(9, 0));
  EXPECT_EQ(VllmFactsOf(testing::CpuDevice(), {}).value().platform, VllmPlatform::kCpu);
  EXPECT_EQ(VllmFactsOf(HipDevice(""), {}).problems().front().Text(),
            "platform: hip () is no device of vLLM's: cuda, hip with a gfx name, cpu or xpu; plan "
            "with another --platform");
}

TEST(VllmRequestOf, ReadsTheLayer) {
  AttentionRequest request;
  request.kind = KvKind::kSliding;
  request.window = 128;
  request.heads = 32, request.kv_heads = 8, request.head_dim = 128;
  request.dtype = request.kv_dtype = DType::kBF16;
  VllmRequest asked = VllmRequestOf(request, ParseAssume("connector=on", "").value());
  EXPECT_TRUE(asked.window && asked.kv_connector);
  EXPECT_EQ(asked.kv, VllmKvDType::kAuto);
  EXPECT_EQ(asked.model->kv_heads, 8);
  request.kv_dtype = DType::kF8E4M3;
  EXPECT_EQ(VllmRequestOf(request, {}).kv, VllmKvDType::kFp8E4M3);
  request.kind = KvKind::kSlidingMla;
  EXPECT_TRUE(VllmRequestOf(request, {}).mla);
}

}  // namespace
}  // namespace ashlar
