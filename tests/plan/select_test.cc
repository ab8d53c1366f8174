#include "plan/select.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/validate.h"
#include "support/plan_builders.h"

namespace ashlar {
namespace {

using testing::AnyRow;
using testing::BasicSpec;
using testing::CpuPaged;
using testing::CpuTarget;
using testing::CpuWindow;
using testing::CudaDevice;
using ::testing::ElementsAre;
using testing::Exact;
using testing::Multiple;
using testing::Placed;
using testing::Reference;
using testing::TargetOf;

// The CUDA rows of the sheet's vectors, as far as they speak of dense attention.
std::vector<AttentionRow> CudaRows() {
  AttentionRow flash = AnyRow("FLASH_ATTN", {Multiple(16)}, "cuda");
  AttentionRow infer = AnyRow("FLASHINFER", {Exact(16), Exact(32), Exact(64)}, "cuda");
  infer.head_sizes = {64, 128, 256};
  AttentionRow triton = AnyRow("TRITON_ATTN", {Multiple(16)}, "cuda");
  triton.sinks = true;
  AttentionRow mla = AnyRow("FLASHMLA", {Exact(64)}, "cuda");
  mla.kinds = {KvKind::kMla};
  mla.mla = true;
  return {triton, mla, infer, flash};
}

constexpr RankRule kCudaRules[] = {
    {"cuda", 100, 109, 0, {"FLASHINFER", "FLASH_ATTN", "TRITON_ATTN"}},
    {"cuda", 0, 0, 0, {"FLASH_ATTN", "FLASHINFER", "TRITON_ATTN"}},
};

Target Cuda(uint32_t capability) { return TargetOf(CudaDevice(capability), {"cuda"}); }

AttentionRequest Dense(int head = 128) {
  AttentionRequest request;
  request.heads = 32;
  request.kv_heads = 8;
  request.head_dim = request.head_dim_v = head;
  request.dtype = request.kv_dtype = DType::kBF16;
  return request;
}

AttentionRequest OnCpu(KvKind kind = KvKind::kFull) {
  AttentionRequest request = Dense(64);
  request.dtype = DType::kF32;
  request.kind = kind;
  request.window = kind == KvKind::kSliding ? 128 : 0;
  return request;
}

Wish Forced(std::string row) {
  Wish wish;
  wish.use = std::move(row);
  wish.use_field = "backends.default.use";
  return wish;
}

struct Outcome {
  Selection selection;
  std::string row() const { return selection.row == nullptr ? "" : selection.row->name; }
  std::vector<std::string> order() const {
    std::vector<std::string> names;
    for (const Candidate& candidate : selection.candidates) names.push_back(candidate.row);
    return names;
  }
  std::vector<RefusalReason> why(const std::string& row) const {
    std::vector<RefusalReason> reasons;
    for (const Candidate& candidate : selection.candidates) {
      if (candidate.row != row) continue;
      for (RefusalReason reason : candidate.refusals) reasons.push_back(reason);
    }
    return reasons;
  }
};

Catalogue& Kept(Catalogue catalogue) {  // a selection points into it
  static std::vector<std::unique_ptr<Catalogue>> kept;
  kept.push_back(std::make_unique<Catalogue>(std::move(catalogue)));
  return *kept.back();
}

Outcome Choose(std::vector<AttentionRow> rows, const AttentionRequest& request,
               const Target& target, const Wish& wish = {},
               std::span<const RankRule> rules = kCudaRules) {
  return {Select(Kept({std::move(rows), {}}), request, target, wish, rules, "full_attention",
                 BasicSpec().origins)};
}

Outcome ChooseCpu(std::vector<AttentionRow> rows, const AttentionRequest& request,
                  const Wish& wish = {}) {
  return Choose(std::move(rows), request, CpuTarget(), wish, kRankRules);
}

std::vector<AttentionRow> CpuRows() { return {Reference(), CpuWindow(), CpuPaged()}; }

TEST(Select, HopperDenseTakesFlashAttention) {  // SV-01
  Outcome out = Choose(CudaRows(), Dense(), Cuda(90));
  EXPECT_EQ(out.row(), "FLASH_ATTN");
  EXPECT_EQ(out.selection.requested, "auto");
  EXPECT_EQ(out.selection.reason, "rank 0 of 3 valid");
  EXPECT_THAT(out.order(), ElementsAre("FLASH_ATTN", "FLASHINFER", "TRITON_ATTN", "FLASHMLA"));
}

TEST(Select, RankFollowsTheArchitecture) {  // SV-02
  EXPECT_EQ(Choose(CudaRows(), Dense(), Cuda(100)).row(), "FLASHINFER");
  std::vector<AttentionRow> without = CudaRows();
  std::erase_if(without, [](const AttentionRow& row) { return row.name == "FLASHINFER"; });
  EXPECT_EQ(Choose(without, Dense(), Cuda(100)).row(), "FLASH_ATTN");
}

TEST(Select, ARowThatIsNotBuiltForTheDeviceIsPassedOver) {
  std::vector<AttentionRow> rows = CudaRows();
  rows[3].built_for = {"sm_80"};
  Outcome out = Choose(rows, Dense(), Cuda(121));
  EXPECT_EQ(out.row(), "FLASHINFER");
  EXPECT_THAT(out.why("FLASH_ATTN"), ElementsAre(RefusalReason::kNotBuilt));
}

TEST(Select, SinksRuleOutRowsWithoutThem) {  // SV-07
  AttentionRequest request = Dense();
  request.sinks = true;
  Outcome out = Choose(CudaRows(), request, Cuda(120));
  EXPECT_EQ(out.row(), "TRITON_ATTN");
  EXPECT_THAT(out.why("FLASH_ATTN"), ElementsAre(RefusalReason::kSinks));
  EXPECT_THAT(out.why("FLASHINFER"), ElementsAre(RefusalReason::kSinks));
}

TEST(Select, AForcedRowThatCannotIsLoud) {  // SV-06, SV-08
  Outcome out = Choose(CudaRows(), Dense(512), Cuda(120), Forced("FLASHINFER"));
  EXPECT_EQ(out.row(), "");
  EXPECT_EQ(out.selection.problem.Text(),
            "model.yaml backends.default.use: FLASHINFER is not valid for group full_attention: "
            "head_size not supported (head size 512: FLASHINFER needs 64, 128 or 256); use "
            "FLASH_ATTN or TRITON_ATTN");
}

TEST(Select, AForcedRowThatCanIsTaken) {
  Outcome out = Choose(CudaRows(), Dense(), Cuda(90), Forced("TRITON_ATTN"));
  EXPECT_EQ(out.row(), "TRITON_ATTN");
  EXPECT_EQ(out.selection.requested, "TRITON_ATTN");
  EXPECT_EQ(out.selection.reason, "forced by backends.default.use");
}

TEST(Select, EachGroupHasItsOwnForcedRow) {  // SV-08, second half
  Spec spec = BasicSpec();
  spec.backends["sliding_window"].use = "FLASHINFER";
  spec.backends["full_attention"].use = "TRITON_ATTN";
  AttentionRequest sliding = Dense(128);
  sliding.kind = KvKind::kSliding;
  sliding.window = 128;
  EXPECT_EQ(
      Choose(CudaRows(), Dense(512), Cuda(120), WishFor(spec, "full_attention", KvKind::kFull))
          .row(),
      "TRITON_ATTN");
  EXPECT_EQ(
      Choose(CudaRows(), sliding, Cuda(120), WishFor(spec, "sliding_window", KvKind::kSliding))
          .row(),
      "FLASHINFER");
}

TEST(Select, ABlockNoRowTakesBlocksThemAll) {  // SV-11
  AttentionRequest request = Dense();
  request.block_tokens = 8;
  Outcome out = Choose(CudaRows(), request, Cuda(90));
  EXPECT_EQ(out.row(), "");
  EXPECT_EQ(out.selection.blocking_field, "kv.blockSize");
  EXPECT_EQ(out.selection.blocked.size(), 3u);
  for (const char* row : {"FLASH_ATTN", "FLASHINFER", "TRITON_ATTN"})
    EXPECT_THAT(out.why(row), ElementsAre(RefusalReason::kBlockSize)) << row;
}

TEST(Select, ABlockMustBeAMultipleOfAForcedRowsKernelBlock) {  // SV-12, SV-13
  AttentionRequest request = Dense(576);
  request.kind = KvKind::kMla;
  request.block_tokens = 32;
  Outcome out = Choose(CudaRows(), request, Cuda(90), Forced("FLASHMLA"));
  EXPECT_EQ(out.row(), "");
  EXPECT_EQ(out.selection.blocking_field, "kv.blockSize");
  request.block_tokens = 128;
  EXPECT_EQ(Choose(CudaRows(), request, Cuda(90), Forced("FLASHMLA")).row(), "FLASHMLA");
}

TEST(Select, LatentAttentionWithoutAnMlaRowIsOpDriven) {  // SV-14
  AttentionRequest request = OnCpu(KvKind::kMla);
  Outcome out = ChooseCpu(CpuRows(), request);
  EXPECT_EQ(out.row(), "");
  EXPECT_EQ(out.selection.outcome, SelectionOutcome::kOpDriven);
  EXPECT_EQ(out.selection.reason, "no MLA backend registered");
  EXPECT_EQ(out.selection.problem.Text(), "");
  EXPECT_THAT(out.why("CPU_PAGED"), ElementsAre(RefusalReason::kMla, RefusalReason::kKind));
}

TEST(Select, LatentAttentionIsLoudWhenItsRowsRefuse) {
  AttentionRow mla = AnyRow("CPU_MLA");
  mla.kinds = {KvKind::kMla};
  mla.mla = true;
  mla.head_sizes = {576};
  Outcome out = ChooseCpu({mla, CpuPaged()}, OnCpu(KvKind::kMla));
  EXPECT_EQ(out.selection.outcome, SelectionOutcome::kNone);
  EXPECT_THAT(out.selection.problem.Text(),
              ::testing::StartsWith("group full_attention: no valid attention backend for "
                                    "mla_attention, 32 heads on 8 KV heads of 64, KV in bfloat16 "
                                    "on cpu (Test CPU): CPU_MLA: head_size not supported ("));
  // A forced row is loud too.
  out = ChooseCpu(CpuRows(), OnCpu(KvKind::kMla), Forced("CPU_PAGED"));
  EXPECT_EQ(out.selection.outcome, SelectionOutcome::kNone);
  EXPECT_THAT(out.selection.problem.Text(), ::testing::HasSubstr("MLA not supported"));
}

TEST(Select, ARowThatCannotBeLoadedHasThatSingleReason) {
  AttentionRow narrow = CpuPaged();
  narrow.head_multiple = 48;
  Selection out = Select(
      Kept({{narrow, Reference()}, {}, {{"CPU_PAGED", RefusalReason::kLoadFailure, "no libcpu"}}}),
      OnCpu(), CpuTarget(), {}, kRankRules, "full_attention", BasicSpec().origins);
  EXPECT_EQ(out.candidates[0].refusals, Refusals{RefusalReason::kLoadFailure});
  EXPECT_EQ(Explain(out.candidates[0], RefusalReason::kLoadFailure).detail, "no libcpu");
}

TEST(Select, RunnabilityIsAReasonBesideTheOthers) {
  AttentionRow narrow = CpuPaged();
  narrow.head_multiple = 48;
  Selection out =
      Select(Kept({{narrow, Reference()},
                   {},
                   {{"CPU_PAGED", RefusalReason::kLaunchProbe, "error 209"},
                    {"REFERENCE", RefusalReason::kToolchain, "no nvcc"}}}),
             OnCpu(), CpuTarget(), {}, kRankRules, "full_attention", BasicSpec().origins);
  EXPECT_EQ(out.candidates[0].refusals,
            (Refusals{RefusalReason::kHeadSize, RefusalReason::kLaunchProbe}));
  EXPECT_EQ(out.candidates[1].refusals, Refusals{RefusalReason::kToolchain});
  EXPECT_THAT(out.problem.Text(), ::testing::HasSubstr("launch probe failed (error 209)"));
}

TEST(Select, TheSameRequestAndWishAreJudgedOnce) {
  Spec spec = BasicSpec();
  Selector selector({CpuRows()}, CpuTarget(), kRankRules, spec.origins);
  EXPECT_EQ(selector.Choose(OnCpu(), {}, "full_attention").row->name, "CPU_PAGED");
  EXPECT_EQ(selector.Choose(OnCpu(), {}, "full_attention-2").row->name, "CPU_PAGED");
  EXPECT_EQ(selector.judged(), 1);
  // Never by the kind: another head size or another wish is another question.
  AttentionRequest wide = OnCpu();
  wide.head_dim = wide.head_dim_v = 20;
  EXPECT_EQ(selector.Choose(wide, {}, "full_attention").row->name, "REFERENCE");
  EXPECT_EQ(selector.Choose(OnCpu(), Forced("REFERENCE"), "full_attention").row->name, "REFERENCE");
  EXPECT_EQ(selector.judged(), 3);
}

TEST(Select, EveryKnownRowTakesABlockOf128OrSaysWhatItNeeds) {  // BK-01
  for (const AttentionRow& row : KnownRows()) {
    AttentionRequest request = Dense();
    request.block_tokens = 128;
    Target target = TargetOf(CudaDevice(90), {row.platform});
    Refusals refusals = Validate(row, request, target);
    if (!refusals.Has(RefusalReason::kBlockSize)) continue;
    EXPECT_THAT(Explain(RefusalReason::kBlockSize, row, request, target).detail,
                ::testing::StartsWith("block 128: " + row.name + " needs "));
  }
}

TEST(Select, AForcedRowOfAnotherDeviceIsLoud) {  // BK-04
  Outcome out = ChooseCpu({CpuPaged(), AnyRow("CUDA_PAGED", {Multiple(16)}, "cuda")}, OnCpu(),
                          Forced("CUDA_PAGED"));
  EXPECT_EQ(out.selection.outcome, SelectionOutcome::kNone);
  EXPECT_EQ(out.selection.problem.Text(),
            "model.yaml backends.default.use: CUDA_PAGED is not valid for group full_attention: "
            "other device (CUDA_PAGED runs on cuda, this plan on cpu); a machine with a cuda "
            "device");
}

TEST(Select, AForcedRowWithoutSinksNamesTheReason) {  // BK-06
  AttentionRequest request = Dense();
  request.sinks = true;
  Outcome out = Choose(CudaRows(), request, Cuda(120), Forced("FLASH_ATTN"));
  EXPECT_THAT(out.selection.problem.Text(),
              ::testing::HasSubstr("attention sinks not supported (FLASH_ATTN has no sink term); "
                                   "use TRITON_ATTN"));
  std::vector<AttentionRow> rows = CudaRows();
  for (AttentionRow& row : rows) row.sinks = false;
  std::string all = Choose(rows, request, Cuda(120)).selection.problem.Text();
  for (const AttentionRow& row : rows) EXPECT_THAT(all, ::testing::HasSubstr(row.name + ": "));
}

TEST(Select, ADeviceTooOldIsNamedWithItsCapability) {  // BK-11
  AttentionRow row = AnyRow("CUDA_PAGED", {Multiple(16)}, "cuda");
  row.capability_unit = CapabilityUnit::kCuda;
  row.capability_min = 80;
  EXPECT_THAT(Choose({row}, Dense(), Cuda(75)).selection.problem.Text(),
              ::testing::HasSubstr("CUDA_PAGED: compute capability not supported (7.5 lacks what "
                                   "CUDA_PAGED needs)"));
}

TEST(WishFor, AutoIsNoWish) {
  Spec spec = BasicSpec();
  spec.backends["full_attention"].use = "Auto";
  EXPECT_EQ(WishFor(spec, "full_attention", KvKind::kFull), Wish{});
  EXPECT_TRUE(CheckWishes(spec, {CpuRows(), {}}, {}).empty());
}

TEST(Select, ReportsEveryCandidateWhenNoneIsValid) {
  AttentionRow a = CpuPaged(), b = Reference();
  a.head_multiple = b.head_multiple = 48;
  EXPECT_EQ(ChooseCpu({a, b}, OnCpu()).selection.problem.Text(),
            "group full_attention: no valid attention backend for full_attention, 32 heads on 8 KV "
            "heads of 64, KV in bfloat16 on cpu (Test CPU): CPU_PAGED: head_size not supported "
            "(head size 64: CPU_PAGED needs a multiple of 48); REFERENCE: head_size not supported "
            "(head size 64: REFERENCE needs a multiple of 48); choose a platform with a backend "
            "for this attention type");
}

TEST(Select, SuggestsTheChangeThatAdmitsACandidate) {
  AttentionRow row = CpuPaged();
  row.batch_invariant = false;
  AttentionRequest request = OnCpu();
  request.batch_invariant = true;
  Outcome out = ChooseCpu({row}, request);
  EXPECT_EQ(out.row(), "");
  EXPECT_EQ(out.selection.problem.next, "try numerics: fast");
}

TEST(Select, KeepsReferenceForLast) {
  EXPECT_THAT(ChooseCpu(CpuRows(), OnCpu()).order(),
              ElementsAre("CPU_PAGED", "CPU_WINDOW", "REFERENCE"));
  EXPECT_EQ(ChooseCpu(CpuRows(), OnCpu()).row(), "CPU_PAGED");
  EXPECT_EQ(ChooseCpu(CpuRows(), OnCpu(KvKind::kSliding)).row(), "CPU_WINDOW");
}

TEST(Select, FallsToReferenceOnlyForWhatTheModelIs) {
  AttentionRequest request = OnCpu();
  request.head_dim = request.head_dim_v = 20;
  Outcome out = ChooseCpu(CpuRows(), request);
  EXPECT_EQ(out.row(), "REFERENCE");
  EXPECT_THAT(out.selection.notes,
              ElementsAre("group full_attention: no row of cpu can carry it out; REFERENCE does "
                          "and is slow"));
  // The same by the user's block size is a refusal.
  request = OnCpu();
  request.block_tokens = 24;
  out = ChooseCpu(CpuRows(), request);
  EXPECT_EQ(out.row(), "");
  EXPECT_EQ(out.selection.blocking_field, "kv.blockSize");
  ASSERT_EQ(out.selection.blocked.size(), 1u);
  EXPECT_EQ(out.selection.blocked[0]->name, "CPU_PAGED");
}

TEST(Select, WarnsWhenASettingPassesOverAFasterRow) {
  AttentionRow fast = CpuPaged();
  fast.name = "CPU_FAST";
  fast.kernel_blocks = {Exact(64)};
  constexpr RankRule kRules[] = {{"cpu", 0, 0, 0, {"CPU_FAST", "CPU_PAGED"}}};
  AttentionRequest request = OnCpu();
  request.block_tokens = 48;
  Outcome out = Choose({fast, CpuPaged()}, request, CpuTarget(), {}, kRules);
  EXPECT_EQ(out.row(), "CPU_PAGED");
  EXPECT_EQ(out.selection.reason, "rank 1 of 1 valid");
  EXPECT_THAT(out.selection.notes,
              ElementsAre("model.yaml kv.blockSize: passes over CPU_FAST in group full_attention; "
                          "CPU_PAGED is used instead and may be slower"));
}

TEST(Select, VerificationOrdersRowsOfOnePlatformOnly) {
  AttentionRow b = CpuPaged(), c = CpuPaged();
  b.name = "B";
  c.name = "C";
  AttentionRow planned = CpuPaged();
  planned.name = "A";
  planned.verification = Verification::kPlanned;
  b.verification = Verification::kCompileVerified;
  EXPECT_THAT(ChooseCpu({planned, b, c, Reference()}, OnCpu()).order(),
              ElementsAre("C", "B", "A", "REFERENCE"));
  // Also before what the rank says.
  AttentionRow first = CpuPaged();
  first.verification = Verification::kPlanned;
  EXPECT_THAT(ChooseCpu({first, c, Reference()}, OnCpu()).order(),
              ElementsAre("C", "CPU_PAGED", "REFERENCE"));
  // Nothing but planned rows: shown, and not moved to another platform.
  EXPECT_EQ(ChooseCpu({planned, Reference()}, OnCpu()).row(), "A");
}

TEST(Select, RowsThatNoRuleNamesFollowByName) {
  AttentionRow z = CpuPaged(), a = CpuPaged();
  z.name = "Z";
  a.name = "A";
  EXPECT_THAT(ChooseCpu({z, a, CpuPaged()}, OnCpu()).order(), ElementsAre("CPU_PAGED", "A", "Z"));
}

TEST(Select, PrefersAndForbids) {
  Wish wish;
  wish.prefer = {"REFERENCE"};
  wish.prefer_field = "backends.default.prefer";
  Outcome out = ChooseCpu(CpuRows(), OnCpu(), wish);
  EXPECT_EQ(out.row(), "REFERENCE");
  EXPECT_EQ(out.selection.requested, "prefer REFERENCE");
  EXPECT_EQ(out.selection.reason, "preferred by backends.default.prefer, rank 0 of 2 valid");
  EXPECT_TRUE(out.selection.notes.empty());

  Wish forbid;
  forbid.forbid = {"CPU_PAGED"};
  forbid.forbid_field = "backends.default.forbid";
  out = ChooseCpu(CpuRows(), OnCpu(), forbid);
  EXPECT_EQ(out.row(), "REFERENCE");
  EXPECT_THAT(out.why("CPU_PAGED"), ElementsAre(RefusalReason::kForbidden));
}

TEST(Select, InvarianceAdmitsOnlyInvariantRows) {
  std::vector<AttentionRow> rows = CpuRows();
  rows[2].batch_invariant = false;
  AttentionRequest request = OnCpu();
  request.batch_invariant = true;
  EXPECT_EQ(ChooseCpu(rows, request).row(), "REFERENCE");
}

TEST(Select, ARowWithoutItsPluginIsShownAndRefused) {
  Selection out = Select(Kept({{CpuPaged(), Reference()}, {"CPU_PAGED"}}), OnCpu(), CpuTarget(), {},
                         kRankRules, "full_attention", BasicSpec().origins);
  ASSERT_NE(out.row, nullptr);
  EXPECT_EQ(out.row->name, "REFERENCE");
  EXPECT_EQ(out.candidates[0].refusals, Refusals{RefusalReason::kPluginMissing});
  EXPECT_EQ(Explain(out.candidates[0], RefusalReason::kPluginMissing).counterfactual,
            "install libashlar_cpu.so");
}

TEST(WishFor, GroupNameBeatsKindBeatsDefaultFieldByField) {
  Spec spec = BasicSpec();
  spec.backends["default"] = {"", {"A"}, {"X"}};
  spec.backends["sliding_window"] = {"B", {}, {"Y"}};
  spec.backends["sliding_window-2"] = {"C", {}, {}};
  Wish first = WishFor(spec, "sliding_window", KvKind::kSliding);
  EXPECT_EQ(first.use, "B");
  EXPECT_EQ(first.use_field, "backends.sliding_window.use");
  EXPECT_THAT(first.prefer, ElementsAre("A"));
  EXPECT_THAT(first.forbid, ElementsAre("Y"));
  Wish second = WishFor(spec, "sliding_window-2", KvKind::kSliding);
  EXPECT_EQ(second.use, "C");
  EXPECT_THAT(second.forbid, ElementsAre("Y"));
  Wish full = WishFor(spec, "full_attention", KvKind::kFull);
  EXPECT_EQ(full.use, "");
  EXPECT_THAT(full.forbid, ElementsAre("X"));
}

TEST(CheckWishes, NamesUnknownRowsAndGroups) {  // SV-17
  Spec spec = Placed(BasicSpec(), "backends.full_attention.use", 7, 10);
  spec.backends["full_attention"].use = "CPU_PAGD";
  spec.backends["sliding_windw"].prefer = {"CPU_WINDOW"};
  spec.backends["mla_attention"].forbid = {"NOBODY"};
  std::vector<KvGroup> groups(2);
  groups[0].name = "sliding_window";
  groups[1].name = "full_attention";
  Problems problems = CheckWishes(spec, {CpuRows(), {}}, groups);
  EXPECT_EQ(Text(problems),
            "model.yaml:7:10 backends.full_attention.use: \"CPU_PAGD\" is no attention backend: "
            "CPU_PAGED, CPU_WINDOW or REFERENCE; did you mean CPU_PAGED?\n"
            "model.yaml backends.mla_attention.forbid: \"NOBODY\" is no attention backend: "
            "CPU_PAGED, CPU_WINDOW or REFERENCE; name one of these\n"
            "model.yaml backends.sliding_windw: \"sliding_windw\" is no KV group of this model: "
            "default, sliding_window or full_attention; did you mean sliding_window?");
}

}  // namespace
}  // namespace ashlar
