// What holds for any installation and any layer.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "catalogue/vllm.h"

namespace ashlar {
namespace {

constexpr uint32_t kSeed = 33;
constexpr int kRounds = 3000;

struct Case {
  VllmFacts facts;
  VllmRequest request;
};

Case AnyCase(std::mt19937& random) {
  auto below = [&](int count) { return static_cast<int>(random() % static_cast<uint32_t>(count)); };
  Case one;
  VllmFacts& facts = one.facts;
  facts.major = 7 + below(6);
  if (below(2) == 0) {
    facts.platform = VllmPlatform::kRocm;
    facts.gfx = "gfx942";
    facts.major = 9, facts.minor = 4;
  }
  for (bool VllmFacts::*fact :
       {&VllmFacts::flashinfer, &VllmFacts::flashinfer_cubin, &VllmFacts::nvcc,
        &VllmFacts::flash_attn_3, &VllmFacts::flash_attn_4, &VllmFacts::flashmla, &VllmFacts::aiter,
        &VllmFacts::aiter_on, &VllmFacts::tokenspeed})
    facts.*fact = below(2) == 0;
  VllmRequest& request = one.request;
  request.mla = below(3) == 0;
  request.head_size = request.mla ? 576 : 32 << below(4);
  request.kv = static_cast<VllmKvDType>(below(kVllmKvDTypes));
  request.block_tokens = below(3) == 0 ? 16 << below(4) : 0;
  for (bool VllmRequest::*wish :
       {&VllmRequest::sparse, &VllmRequest::sinks, &VllmRequest::mm_prefix, &VllmRequest::window,
        &VllmRequest::non_causal, &VllmRequest::batch_invariant, &VllmRequest::kv_connector,
        &VllmRequest::dcp})
    request.*wish = below(8) == 0;
  if (below(2) == 0) request.query_heads = 1 << below(8);
  return one;
}

template <class Hold>
void ForAnyCase(Hold hold) {
  std::mt19937 random(kSeed);
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + ", round " + std::to_string(round));
    hold(AnyCase(random));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(VllmProperty, TheFirstValidCandidateIsChosen) {
  int chosen = 0;
  ForAnyCase([&](const Case& one) {
    VllmChoice choice = VllmSelect(one.facts, one.request, "");
    auto first = std::find_if(choice.candidates.begin(), choice.candidates.end(),
                              [](const VllmCandidate& c) { return c.reasons.empty(); });
    if (first == choice.candidates.end()) {
      EXPECT_EQ(choice.error, VllmError::kNoneValid);
      return;
    }
    ++chosen;
    EXPECT_EQ(choice.chosen, first->backend);
    VllmRow row = *FindVllmRow(choice.chosen, one.facts, one.request);
    EXPECT_TRUE(VllmValidate(row, one.facts, one.request).empty());
  });
  EXPECT_GT(chosen, kRounds / 4);
}

TEST(VllmProperty, AForcedBackendIsTakenOrLoud) {
  const std::vector<std::string_view> backends = VllmBackends();
  size_t next = 0;
  ForAnyCase([&](const Case& one) {
    std::string_view forced = backends[next++ % backends.size()];
    VllmChoice choice = VllmSelect(one.facts, one.request, forced);
    EXPECT_EQ(choice.chosen, choice.forced_reasons.empty() ? forced : std::string_view());
    EXPECT_EQ(choice.error == VllmError::kForcedInvalid, !choice.forced_reasons.empty());
  });
}

}  // namespace
}  // namespace ashlar
