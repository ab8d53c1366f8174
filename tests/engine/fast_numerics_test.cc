// What `numerics: fast` promises. A prefix that is found again is the same bytes, so an answer on
// it is the same to the last bit. How a request is batched, cut or interrupted may change the last
// bits, and then this rule for bf16 holds, with the reference plugin in f32 as the oracle: it
// scores our tokens one after the other; where its own best two lie more than 0.25 nat apart ours
// is its best, elsewhere ours is within 0.5 nat of it; and the mean divergence is at most 0.01.
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>

#include "support/engine_client.h"
#include "support/toy_model_engine.h"
#include "support/toy_model_weights.h"

namespace ashlar {
namespace {

constexpr toy::TinyBlocks kBf16{16, 0, 100, DType::kBF16};

std::unique_ptr<Device> OpenFast() { return toy::OpenPlugin("cpu", 2, false); }

Engine::Options Alone() {
  Engine::Options options = toy::SmallOptions();
  options.max_sequences = 1;
  options.batch_tokens = 512;
  options.prefix_cache = false;
  return options;
}

// Greedy, with the whole distribution at each token.
Request Traced(std::vector<int32_t> prompt, int tokens) {
  Request request;
  request.prompt = std::move(prompt);
  request.max_tokens = tokens;
  request.ignore_eos = true;
  request.sampling.temperature = 0;
  request.sampling.logprobs = static_cast<int>(toy::kTinyVocab);
  return request;
}

std::vector<int32_t> RandomIds(std::mt19937& random, int count) {
  std::vector<int32_t> ids;
  for (int i = 0; i < count; ++i) {
    ids.push_back(static_cast<int32_t>(random() % static_cast<unsigned>(toy::kTinyVocab)));
  }
  return ids;
}

std::vector<float> ByToken(const TokenLogprob& token) {
  std::vector<float> logprobs(static_cast<size_t>(toy::kTinyVocab));
  for (auto [id, logprob] : token.top) logprobs[static_cast<size_t>(id)] = logprob;
  return logprobs;
}

// Of all positions that were compared.
struct Tally {
  int positions = 0, close = 0, flips = 0;  // oracle's best two within 0.25; another token of ours
  int wrong = 0;                            // against the rule
  double divergence = 0;                    // summed over positions

  void Add(const TokenLogprob& oracle, const TokenLogprob& ours) {
    ++positions;
    std::vector<float> truth = ByToken(oracle), made = ByToken(ours);
    float best = oracle.top[0].second;
    bool decided = best - oracle.top[1].second > 0.25f;
    bool same = ours.id == oracle.top[0].first;
    close += decided ? 0 : 1;
    flips += same ? 0 : 1;
    bool right = decided ? same : best - truth[static_cast<size_t>(ours.id)] <= 0.5f;
    wrong += right ? 0 : 1;
    for (size_t i = 0; i < truth.size(); ++i) {
      divergence += std::exp(double{truth[i]}) * (double{truth[i]} - double{made[i]});
    }
  }
};

// The oracle's view of each token of the answer, given all before it.
void Compare(Engine& oracle, const std::vector<int32_t>& prompt, const Answer& answer,
             Tally& tally) {
  Request scored = Traced(prompt, 1);
  scored.prompt.insert(scored.prompt.end(), answer.ids.begin(), answer.ids.end());
  scored.sampling.prompt_logprobs = static_cast<int>(toy::kTinyVocab);
  Answer truth = Ask(oracle, std::move(scored));
  ASSERT_EQ(truth.prompt_logprobs.size(), prompt.size() + answer.ids.size());
  ASSERT_EQ(answer.logprobs.size(), answer.ids.size());
  for (size_t i = 0; i < answer.ids.size(); ++i) {
    tally.Add(truth.prompt_logprobs[prompt.size() + i], answer.logprobs[i]);
  }
}

class FastNumerics : public testing::TestWithParam<toy::Architecture> {};

TEST_P(FastNumerics, AnAnswerOnAPrefixFoundAgainIsTheSameToTheLastBit) {
  toy::TinyEngine engine(GetParam(), kBf16, toy::SmallOptions(), OpenFast());
  std::mt19937 random(40);
  std::vector<int32_t> prefix = RandomIds(random, 48);
  Ask(*engine, Traced(prefix, 4));
  std::vector<int32_t> prompt = prefix;
  for (int32_t id : RandomIds(random, 7)) prompt.push_back(id);
  Answer hit = Ask(*engine, Traced(prompt, 30));
  EXPECT_EQ(hit.cached_tokens, 48);
  for (int round = 0; round < 4; ++round) {
    // Others take blocks and give them back; those of the prefix are held anew each time.
    Ask(*engine, Traced(RandomIds(random, 60), 20));
    Answer again = Ask(*engine, Traced(prompt, 30));
    EXPECT_EQ(again.cached_tokens, 48);
    ASSERT_EQ(again.ids, hit.ids);
    for (size_t i = 0; i < hit.logprobs.size(); ++i) {
      ASSERT_EQ(again.logprobs[i].top, hit.logprobs[i].top) << "token " << i;
    }
  }
}

TEST_P(FastNumerics, HoweverServedTheAnswersKeepToTheRule) {
  toy::TinyEngine oracle(GetParam(), {16, 0, 100}, Alone());
  struct {
    const char* name;
    toy::TinyBlocks blocks;
    int batch_tokens, sequences;
    bool prefix_cache, must_preempt;
  } variations[] = {{"alone", kBf16, 512, 1, false, false},
                    {"batched on cached prefixes", kBf16, 64, 8, true, false},
                    {"chunks of 5", kBf16, 5, 4, true, false},
                    {"preempted", {16, 0, 8, DType::kBF16}, 64, 8, true, true},
                    {"blocks of 64", {64, 16, 100, DType::kBF16}, 64, 8, true, false}};
  for (const auto& variation : variations) {
    SCOPED_TRACE(variation.name);
    Engine::Options options = toy::SmallOptions();
    options.batch_tokens = variation.batch_tokens;
    options.max_sequences = variation.sequences;
    options.prefix_cache = variation.prefix_cache;
    toy::TinyEngine engine(GetParam(), variation.blocks, options, OpenFast());
    std::mt19937 random(41);
    std::vector<int32_t> common = RandomIds(random, 32);
    std::vector<std::vector<int32_t>> prompts;
    std::vector<Pending> pending;
    for (int i = 0; i < 8; ++i) {
      prompts.push_back(i % 2 == 0 ? common : RandomIds(random, 20));
      for (int32_t id : RandomIds(random, 5 + i)) prompts.back().push_back(id);
      pending.push_back(Submit(*engine, Traced(prompts.back(), 24)));
    }
    Tally tally;
    Answer first;
    for (size_t i = 0; i < prompts.size(); ++i) {
      Answer answer = Wait(*pending[i].events);
      Compare(*oracle, prompts[i], answer, tally);
      if (HasFatalFailure()) return;
      if (i == 0) first = std::move(answer);
    }
    EXPECT_EQ(tally.wrong, 0);
    EXPECT_LE(tally.divergence / tally.positions, 0.01);
    EXPECT_TRUE(engine->stats().preemptions > 0 || !variation.must_preempt);
    std::cout << "fast, " << variation.name << ": " << tally.positions << " tokens, " << tally.close
              << " within 0.25 nat, " << tally.flips << " other tokens, mean KL "
              << tally.divergence / tally.positions << "\n";
    // The rule notices tokens that are not the model's.
    Tally false_tally;
    for (size_t i = 0; i < first.ids.size(); ++i) {
      first.ids[i] = static_cast<int32_t>((first.ids[i] + 1) % toy::kTinyVocab);
      first.logprobs[i].id = first.ids[i];
    }
    Compare(*oracle, prompts[0], first, false_tally);
    EXPECT_GT(false_tally.wrong, 0);
    EXPECT_GT(false_tally.divergence / false_tally.positions, 0.01);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, FastNumerics,
                         testing::Values(toy::Architecture::kLlama, toy::Architecture::kGemma),
                         [](const auto& info) {
                           return info.param == toy::Architecture::kLlama ? "llama" : "gemma";
                         });

}  // namespace
}  // namespace ashlar
