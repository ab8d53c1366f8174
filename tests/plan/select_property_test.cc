// What holds for any rows, requests and devices.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "plan/select.h"
#include "plan/validate.h"
#include "support/plan_builders.h"

namespace ashlar {
namespace {

using testing::BasicSpec;
using testing::CudaDevice;
using testing::TargetOf;

constexpr uint32_t kSeed = 20;
constexpr int kRounds = 2000;

class Dice {
 public:
  explicit Dice(uint32_t seed) : random_(seed) {}
  int Below(int count) { return static_cast<int>(random_() % static_cast<uint32_t>(count)); }
  bool Once(int in) { return Below(in) == 0; }
  template <class T>
  T Of(std::initializer_list<T> values) {
    return *(values.begin() + Below(static_cast<int>(values.size())));
  }
  // Each member with a chance of five in six.
  template <class T>
  std::vector<T> Most(std::initializer_list<T> values) {
    std::vector<T> most;
    for (const T& value : values) {
      if (!Once(6)) most.push_back(value);
    }
    return most;
  }
  template <class T>
  void Shuffle(std::vector<T>& values) {
    std::shuffle(values.begin(), values.end(), random_);
  }

 private:
  std::mt19937 random_;
};

AttentionRow AnyRowAtAll(Dice& dice, int number) {
  AttentionRow row;
  row.name = "ROW_" + std::to_string(number);
  row.platform = dice.Of<const char*>({"cuda", "cuda", "cpu", "reference"});
  row.kinds = dice.Most({KvKind::kFull, KvKind::kSliding, KvKind::kMla, KvKind::kCross});
  row.dtypes = dice.Most({DType::kF32, DType::kF16, DType::kBF16});
  row.kv_dtypes = dice.Most({DType::kF16, DType::kBF16, DType::kF8E4M3});
  row.head_sizes = dice.Most({64, 96, 128, 256});
  row.head_multiple = dice.Of({1, 16, 32});
  row.kernel_blocks = dice.Most({BlockRule{16, true}, BlockRule{64, false}, BlockRule{32, false}});
  if (row.kernel_blocks.empty()) row.kernel_blocks = {{16, true}};
  row.layouts = dice.Most({KvLayout::kLBHNC, KvLayout::kLBNHC, KvLayout::kBLHNC});
  for (bool AttentionRow::*feature :
       {&AttentionRow::sinks, &AttentionRow::window, &AttentionRow::mla,
        &AttentionRow::kv_connector, &AttentionRow::batch_invariant, &AttentionRow::non_causal,
        &AttentionRow::sparse, &AttentionRow::mm_prefix, &AttentionRow::pcp, &AttentionRow::dcp,
        &AttentionRow::host_query_lengths})
    row.*feature = dice.Once(3);
  row.capability_unit = dice.Of({CapabilityUnit::kAny, CapabilityUnit::kCuda});
  row.capability_min = dice.Of({0u, 80u, 90u});
  row.verification =
      dice.Of({Verification::kTested, Verification::kCompileVerified, Verification::kPlanned});
  if (dice.Once(4)) row.built_for = {dice.Of<const char*>({"sm_80", "sm_90a", "avx2"})};
  return row;
}

AttentionRequest AnyRequest(Dice& dice) {
  AttentionRequest request;
  request.kind = dice.Of({KvKind::kFull, KvKind::kFull, KvKind::kSliding, KvKind::kMla});
  request.window = request.kind == KvKind::kSliding ? 128 : 0;
  request.heads = 8, request.kv_heads = 2;
  request.head_dim = request.head_dim_v = dice.Of({64, 96, 128});
  request.dtype = dice.Of({DType::kF32, DType::kBF16});
  request.kv_dtype = dice.Of({DType::kBF16, DType::kF16, DType::kF8E4M3});
  request.block_tokens = dice.Of({0, 0, 16, 24, 64});
  if (dice.Once(4)) request.layout = KvLayout::kLBNHC;
  for (bool AttentionRequest::*wish :
       {&AttentionRequest::sinks, &AttentionRequest::non_causal, &AttentionRequest::batch_invariant,
        &AttentionRequest::kv_connector, &AttentionRequest::sparse, &AttentionRequest::mm_prefix,
        &AttentionRequest::pcp, &AttentionRequest::dcp, &AttentionRequest::adaptive_verification})
    request.*wish = dice.Once(20);
  return request;
}

struct Case {
  Catalogue catalogue;
  AttentionRequest request;
  Target target;
  Wish wish;
  std::vector<RankRule> rules;
};

Case AnyCase(Dice& dice) {
  Case one;
  const int count = 1 + dice.Below(12);
  for (int i = 0; i < count; ++i) one.catalogue.rows.push_back(AnyRowAtAll(dice, i));
  if (dice.Once(3)) one.catalogue.missing = {"ROW_0"};
  if (dice.Once(4))
    one.catalogue.faults = {
        {"ROW_1", dice.Of({RefusalReason::kLoadFailure, RefusalReason::kLaunchProbe}), "why"}};
  one.request = AnyRequest(dice);
  one.target =
      dice.Once(2) ? TargetOf(CudaDevice(dice.Of({80u, 90u})), {"cuda"}) : testing::CpuTarget();
  if (dice.Once(4)) one.wish.prefer = {"ROW_2", "ROW_0"};
  if (dice.Once(6)) one.wish.forbid = {"ROW_3"};
  if (dice.Once(8)) one.wish.use = "ROW_1";
  one.wish.use_field = one.wish.forbid_field = one.wish.prefer_field = "backends.default";
  one.rules = {{"cuda", 90, 0, 0, {"ROW_4", "ROW_1"}}, {"cuda", 0, 0, 0, {"ROW_1", "ROW_4"}}};
  return one;
}

Selection Choose(const Case& one) {
  static const Spec spec = BasicSpec();
  return Select(one.catalogue, one.request, one.target, one.wish, one.rules, "full_attention",
                spec.origins);
}

// Everything a reader sees of a selection.
std::string Shown(const Selection& selection) {
  std::string text = selection.row == nullptr ? "none" : selection.row->name;
  text += " " + selection.requested + " " + selection.reason + " " + selection.blocking_field;
  for (const Candidate& candidate : selection.candidates) {
    text += "\n" + std::to_string(candidate.rank) + " " + candidate.row;
    for (RefusalReason reason : candidate.refusals) {
      Explanation words = Explain(candidate, reason);
      text +=
          "\n  " + std::string(Label(reason)) + ": " + words.detail + "; " + words.counterfactual;
    }
  }
  return text + "\n" + selection.problem.Text();
}

template <class Hold>
void ForAnyCase(Hold hold) {
  Dice dice(kSeed);
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + ", round " + std::to_string(round));
    Case one = AnyCase(dice);
    hold(one, dice);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(SelectProperty, TheChosenRowPassesItsOwnValidation) {
  int chosen = 0;
  ForAnyCase([&](const Case& one, Dice&) {
    Selection selection = Choose(one);
    if (selection.row == nullptr) return;
    ++chosen;
    EXPECT_EQ(selection.outcome, SelectionOutcome::kRow);
    EXPECT_TRUE(Validate(*selection.row, one.request, one.target).empty());
  });
  EXPECT_GT(chosen, kRounds / 8);
}

TEST(SelectProperty, WithoutAForcedRowTheFirstValidOneIsTaken) {
  ForAnyCase([](const Case& one, Dice&) {
    Selection selection = Choose(one);
    if (selection.row == nullptr || !one.wish.use.empty()) return;
    for (const Candidate& candidate : selection.candidates) {
      if (candidate.row == selection.row->name) return;
      EXPECT_FALSE(candidate.refusals.empty()) << candidate.row << " is valid and comes first";
    }
  });
}

TEST(SelectProperty, EveryRowIsACandidateOnceInTheOrderOfRank) {
  ForAnyCase([](const Case& one, Dice&) {
    Selection selection = Choose(one);
    ASSERT_EQ(selection.candidates.size(), one.catalogue.rows.size());
    for (size_t i = 0; i < selection.candidates.size(); ++i)
      EXPECT_EQ(selection.candidates[i].rank, static_cast<int>(i));
  });
}

TEST(SelectProperty, TheOrderInWhichPluginsAreLoadedChangesNothing) {
  ForAnyCase([](const Case& one, Dice& dice) {
    Case shuffled = one;
    dice.Shuffle(shuffled.catalogue.rows);
    EXPECT_EQ(Shown(Choose(one)), Shown(Choose(shuffled)));
  });
}

TEST(SelectProperty, TheSameInputGivesTheSameBytes) {
  ForAnyCase([](const Case& one, Dice&) { EXPECT_EQ(Shown(Choose(one)), Shown(Choose(one))); });
}

}  // namespace
}  // namespace ashlar
