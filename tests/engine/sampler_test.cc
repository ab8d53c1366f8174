#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>

namespace ashlar {
namespace {

std::vector<float> RandomLogits(std::mt19937& random, size_t vocab, float spread = 3) {
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> logits(vocab);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

int32_t Pick(std::vector<float> logits, const Sampling& sampling, uint64_t seed = 1,
             uint64_t position = 0) {
  SampleInput input;
  input.logits = logits;
  input.seed = seed;
  input.position = position;
  return Sampler().Sample(input, sampling).id;
}

Sampling WithTemperature(float temperature) {
  Sampling sampling;
  sampling.temperature = temperature;
  return sampling;
}

// The stated order, in double, with sorts: which tokens may come and how likely.
std::map<int32_t, double> Naive(std::vector<double> logits, const Sampling& sampling,
                                const std::vector<int32_t>& prompt,
                                const std::vector<int32_t>& generated) {
  for (auto [id, bias] : sampling.logit_bias) logits[static_cast<size_t>(id)] += bias;
  std::set<int32_t> seen(prompt.begin(), prompt.end());
  seen.insert(generated.begin(), generated.end());
  for (int32_t id : seen) {
    double& logit = logits[static_cast<size_t>(id)];
    logit = logit > 0 ? logit / sampling.repetition_penalty : logit * sampling.repetition_penalty;
  }
  for (int32_t id : std::set<int32_t>(generated.begin(), generated.end())) {
    auto count = std::ranges::count(generated, id);
    logits[static_cast<size_t>(id)] -=
        sampling.frequency_penalty * static_cast<double>(count) + sampling.presence_penalty;
  }
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  double best = logits[static_cast<size_t>(order[0])];
  auto weight = [&](int32_t id) {
    return std::exp((logits[static_cast<size_t>(id)] - best) / sampling.temperature);
  };
  if (sampling.top_k > 0 && static_cast<size_t>(sampling.top_k) < order.size()) {
    order.resize(static_cast<size_t>(sampling.top_k));
  }
  double total = 0;
  for (int32_t id : order) total += weight(id);
  double reached = 0;
  size_t kept = 0;
  while (kept < order.size() && (kept == 0 || reached < sampling.top_p * total)) {
    reached += weight(order[kept++]);
  }
  order.resize(kept);
  std::map<int32_t, double> chances;
  double mass = 0;
  for (int32_t id : order) {
    if (weight(id) >= sampling.min_p) mass += chances[id] = weight(id);
  }
  for (auto& [id, chance] : chances) chance /= mass;
  return chances;
}

TEST(Sampler, GreedyTakesTheLowestIdOfATie) {
  EXPECT_EQ(Pick({1, 5, 5, 2}, WithTemperature(0)), 1);
  EXPECT_EQ(Pick(std::vector<float>(1000, -3), WithTemperature(0)), 0);
  std::vector<float> late(1000, 0);
  late[999] = late[998] = 1;
  EXPECT_EQ(Pick(late, WithTemperature(0)), 998);
}

TEST(Sampler, TopKTakesTheLowestIdsOfATie) {
  Sampling sampling = WithTemperature(1);
  sampling.top_k = 2;
  std::set<int32_t> seen;
  for (uint64_t i = 0; i < 200; ++i) seen.insert(Pick({1, 3, 3, 3, 0}, sampling, 4, i));
  EXPECT_EQ(seen, (std::set<int32_t>{1, 2}));
}

// Chi-square of 8,000 draws against the exact chances; the bound is passed by chance once in 10^6.
TEST(Sampler, DrawsFollowTheStatedDistribution) {
  std::mt19937 random(12);
  for (int c = 0; c < 28; ++c) {
    SCOPED_TRACE(testing::Message() << "case " << c);
    size_t vocab = 5 + random() % 60;
    std::vector<float> logits = RandomLogits(random, vocab, 2);
    Sampling sampling = WithTemperature(c % 3 == 0 ? 1.0f : 0.6f);
    if (c % 2 == 1) sampling.top_k = static_cast<int>(1 + random() % vocab);
    if (c % 4 >= 2) sampling.top_p = 0.85f;
    if (c % 5 == 4) sampling.min_p = 0.05f;
    if (c % 3 == 2) sampling.repetition_penalty = 1.3f;
    if (c % 3 == 1) sampling.frequency_penalty = 0.4f, sampling.presence_penalty = 0.2f;
    if (c % 7 == 6) sampling.logit_bias = {{0, 1.5f}, {2, -2.0f}};
    std::vector<int32_t> prompt = {0, 1, 1}, generated = {1, 3, 3, 4};
    auto chances = Naive({logits.begin(), logits.end()}, sampling, prompt, generated);

    const int draws = 8'000;
    std::map<int32_t, int> counts;
    Sampler sampler;
    for (uint64_t i = 0; i < draws; ++i) {
      std::vector<float> row = logits;
      SampleInput input{row, prompt, generated, {}, static_cast<uint64_t>(100 + c), i};
      ++counts[sampler.Sample(input, sampling).id];
    }
    double chi = 0;
    int rest = 0, cells = 0;
    double rest_expected = 0;
    for (const auto& [id, chance] : chances) {
      if (chance * draws < 5) {
        rest += counts[id];
        rest_expected += chance * draws;
        continue;
      }
      chi += std::pow(counts[id] - chance * draws, 2) / (chance * draws);
      ++cells;
    }
    if (rest_expected >= 5) chi += std::pow(rest - rest_expected, 2) / rest_expected, ++cells;
    for (const auto& [id, count] : counts) {
      EXPECT_TRUE(count == 0 || chances.contains(id)) << "token " << id << " was cut";
    }
    double k = std::max(cells - 1, 1);  // Wilson-Hilferty, z = 4.75
    double bound = k * std::pow(1 - 2 / (9 * k) + 4.75 * std::sqrt(2 / (9 * k)), 3);
    EXPECT_LT(chi, bound) << cells << " cells";
  }
}

// On a large vocabulary the cuts are those of a full sort.
TEST(Sampler, CutsOfALargeVocabularyAreExact) {
  for (unsigned seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    std::vector<float> logits = RandomLogits(random, 20'000, seed % 2 == 0 ? 3.0f : 0.02f);
    Sampling sampling = WithTemperature(0.9f);
    if (seed % 3 != 0) sampling.top_k = static_cast<int>(1 + random() % 300);
    if (seed % 3 != 1) sampling.top_p = 0.3f;
    auto chances = Naive({logits.begin(), logits.end()}, sampling, {}, {});
    std::set<int32_t> seen;
    for (uint64_t i = 0; i < 150; ++i) {
      int32_t id = Pick(logits, sampling, seed, i);
      ASSERT_TRUE(chances.contains(id));
      seen.insert(id);
    }
    EXPECT_GE(seen.size(), std::min<size_t>(chances.size(), 2));
  }
}

TEST(Sampler, IsAFunctionOfSeedAndPosition) {
  std::mt19937 random(3);
  std::vector<float> logits = RandomLogits(random, 5000);
  std::set<int32_t> by_position, by_seed;
  for (uint64_t i = 0; i < 50; ++i) {
    EXPECT_EQ(Pick(logits, WithTemperature(1), 9, i), Pick(logits, WithTemperature(1), 9, i));
    by_position.insert(Pick(logits, WithTemperature(1), 9, i));
    by_seed.insert(Pick(logits, WithTemperature(1), i, 0));
  }
  EXPECT_GT(by_position.size(), 10u);
  EXPECT_GT(by_seed.size(), 10u);
}

// The numbers themselves: a change here changes every seeded answer that users have stored.
TEST(Sampler, TheRandomStreamIsFixed) {
  EXPECT_DOUBLE_EQ(UniformAt(0, 0), 0.6524484863740322);
  EXPECT_DOUBLE_EQ(UniformAt(1, 0), 0.36818951565166946);
  EXPECT_DOUBLE_EQ(UniformAt(1, 1), 0.9435642308648544);
}

TEST(Sampler, UniformsAreUniform) {
  std::array<int, 64> cells{};
  for (uint64_t i = 0; i < 32'000; ++i) ++cells[static_cast<size_t>(UniformAt(5, i) * 64)];
  double chi = 0;
  for (int count : cells) chi += std::pow(count - 500.0, 2) / 500.0;
  EXPECT_LT(chi, 130);  // 63 degrees of freedom, about 1 in 10^6
}

TEST(Sampler, LogprobsAreBeforeTemperatureAndAfterBias) {
  std::vector<float> logits = {1, 2, 3, 4};
  Sampling sampling = WithTemperature(0);
  sampling.logprobs = 2;
  sampling.logit_bias = {{0, 4.0f}};
  SampleInput input;
  input.logits = logits;
  TokenLogprob token = Sampler().Sample(input, sampling);
  double sum = std::exp(5.0) + std::exp(2.0) + std::exp(3.0) + std::exp(4.0);
  EXPECT_EQ(token.id, 0);
  EXPECT_NEAR(token.logprob, 5 - std::log(sum), 1e-6);
  ASSERT_EQ(token.top.size(), 2u);
  EXPECT_EQ(token.top[0].first, 0);
  EXPECT_EQ(token.top[1].first, 3);
  EXPECT_NEAR(token.top[1].second, 4 - std::log(sum), 1e-6);
}

TEST(Sampler, LogprobsSumToOne) {
  std::mt19937 random(8);
  std::vector<float> logits = RandomLogits(random, 3000, 5);
  Sampler sampler;
  TokenLogprob scored = sampler.Score(logits, 17, 3000);
  double sum = 0;
  for (auto [id, logprob] : scored.top) sum += std::exp(static_cast<double>(logprob));
  EXPECT_NEAR(sum, 1, 1e-5);
  EXPECT_TRUE(std::ranges::is_sorted(scored.top, std::greater<>(),
                                     [](const auto& entry) { return entry.second; }));
  auto own = std::ranges::find(scored.top, 17, [](const auto& entry) { return entry.first; });
  EXPECT_EQ(own->second, scored.logprob);
}

TEST(Sampler, BannedIdsNeverComeNorShow) {
  std::vector<float> logits = {9, 1, 1};
  std::vector<int32_t> banned = {0, 77};
  Sampling sampling = WithTemperature(0);
  sampling.logprobs = 3;
  SampleInput input;
  input.logits = logits;
  input.banned = banned;
  TokenLogprob token = Sampler().Sample(input, sampling);
  EXPECT_EQ(token.id, 1);
  EXPECT_EQ(token.top.size(), 2u);
}

TEST(Sampler, ExtremeSettingsStillGiveAToken) {
  std::vector<float> logits = {-1e30f, 1e30f, 3e38f, -3e38f};
  for (float temperature : {0.0f, 1e-38f, 1e-45f, 1.0f, 1e30f}) {
    for (float top_p : {0.0f, 1e-9f, 1.0f}) {
      Sampling sampling = WithTemperature(temperature);
      sampling.top_p = top_p;
      sampling.min_p = 1;
      int32_t id = Pick(logits, sampling);
      EXPECT_TRUE(id >= 0 && id < 4);
      EXPECT_TRUE(temperature > 1 || id == 2);
    }
  }
}

TEST(Sampler, FindsWhatIsNotFinite) {
  for (float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                    std::numeric_limits<float>::quiet_NaN()}) {
    for (size_t where : {0u, 15u, 16u, 40u, 99u}) {
      std::vector<float> row(100, 1);
      EXPECT_TRUE(AllFinite(row));
      row[where] = bad;
      EXPECT_FALSE(AllFinite(row));
    }
  }
  EXPECT_TRUE(AllFinite(std::vector<float>{3.4e38f, -3.4e38f, 0, 1e-45f}));
}

}  // namespace
}  // namespace ashlar
