// Compiled without contraction to fused multiply-add (CMakeLists.txt): the weights must be the same
// bits on every machine, since a token hangs on them.
#include "engine/sampler.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace ashlar {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// A constant count lets the compiler use vectors at -O2, and fixes the order of float additions.
constexpr size_t kLanes = 16;

// SplitMix64's finaliser: every input bit changes every output bit with probability about 1/2.
uint64_t Mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// exp(x) for x <= 0 to 2 ulp: 2^n * p(r) with n = round(x / ln 2) and |r| <= ln 2 / 2; 0 below the
// normal range. Own code, since libraries differ in the last bit.
inline float ExpOf(float x) {
  float clamped = x > -87.0f ? x : -87.0f;
  float shifted = clamped * 1.44269504f + 12582912.0f;  // rounds to an integer in the low bits
  float n = shifted - 12582912.0f;
  float r = (clamped - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  uint32_t power = (std::bit_cast<uint32_t>(shifted) - 0x4b400000u + 127u) << 23;
  float value = p * std::bit_cast<float>(power);
  return x > -87.0f ? value : 0.0f;
}

template <class Body>
inline void ForLanes(size_t count, Body body) {
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) body(i + lane, lane);
  }
  for (; i < count; ++i) body(i, 0);
}

float MaxOf(std::span<const float> logits) {
  std::array<float, kLanes> best;
  best.fill(kMinusInfinity);
  ForLanes(logits.size(), [&](size_t i, size_t lane) {
    best[lane] = logits[i] > best[lane] ? logits[i] : best[lane];
  });
  return *std::max_element(best.begin(), best.end());
}

int32_t Greedy(std::span<const float> logits) {
  float best = MaxOf(logits);
  return static_cast<int32_t>(std::find(logits.begin(), logits.end(), best) - logits.begin());
}

// log(sum(exp(logits))), in double.
double LogSum(std::span<const float> logits) {
  float best = MaxOf(logits);
  std::array<double, kLanes> sums{};
  ForLanes(logits.size(), [&](size_t i, size_t lane) { sums[lane] += ExpOf(logits[i] - best); });
  double sum = 0;
  for (double lane : sums) sum += lane;
  return best + std::log(sum);
}

// The `count` best, best first, ties to the lowest id: a heap whose root is the worst kept.
std::vector<std::pair<int32_t, float>> Best(std::span<const float> logits, int count) {
  std::vector<std::pair<int32_t, float>> heap;
  size_t most = std::min(logits.size(), static_cast<size_t>(std::max(count, 0)));
  if (most == 0) return heap;
  auto better = [](const auto& a, const auto& b) {
    return a.second > b.second || (a.second == b.second && a.first < b.first);
  };
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] == kMinusInfinity) continue;  // banned
    if (heap.size() == most && logits[i] <= heap.front().second) continue;
    if (heap.size() == most) {
      std::pop_heap(heap.begin(), heap.end(), better);
      heap.pop_back();
    }
    heap.emplace_back(static_cast<int32_t>(i), logits[i]);
    std::push_heap(heap.begin(), heap.end(), better);
  }
  std::sort_heap(heap.begin(), heap.end(), better);
  return heap;
}

}  // namespace

bool AllFinite(std::span<const float> logits) {
  std::array<uint32_t, kLanes> bad{};
  ForLanes(logits.size(), [&](size_t i, size_t lane) {
    uint32_t exponent = std::bit_cast<uint32_t>(logits[i]) & 0x7f800000u;
    bad[lane] |= static_cast<uint32_t>(exponent == 0x7f800000u);
  });
  return std::ranges::all_of(bad, [](uint32_t lane) { return lane == 0; });
}

double UniformAt(uint64_t seed, uint64_t position) {
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;
  uint64_t bits = Mix(Mix(seed + kGolden) + (position + 1) * kGolden);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

uint64_t MixSeed(uint64_t seed, uint64_t request) { return Mix(Mix(seed) ^ request); }

TokenLogprob Sampler::Score(std::span<const float> logits, int32_t token, int top) {
  double log_sum = LogSum(logits);
  TokenLogprob scored{token, static_cast<float>(logits[token] - log_sum), Best(logits, top)};
  for (auto& [id, value] : scored.top) value = static_cast<float>(value - log_sum);
  return scored;
}

TokenLogprob Sampler::Sample(const SampleInput& input, const Sampling& sampling) {
  Check(!input.logits.empty(), "a row of logits has a token");
  int64_t vocab = static_cast<int64_t>(input.logits.size());
  auto known = [&](int32_t id) { return id >= 0 && id < vocab; };
  for (auto [id, bias] : sampling.logit_bias) {
    if (known(id)) input.logits[id] += bias;
  }
  for (int32_t id : input.banned) {
    if (known(id)) input.logits[id] = kMinusInfinity;
  }
  Penalize(input, sampling);
  int32_t token = sampling.temperature <= 0
                      ? Greedy(input.logits)
                      : Draw(input.logits, sampling, UniformAt(input.seed, input.position));
  if (sampling.logprobs < 0) return {token, 0, {}};
  return Score(input.logits, token, sampling.logprobs);
}

void Sampler::Penalize(const SampleInput& input, const Sampling& sampling) {
  bool additive = sampling.presence_penalty != 0 || sampling.frequency_penalty != 0;
  if (sampling.repetition_penalty == 1 && !additive) return;
  counts_.resize(input.logits.size());
  auto known = [&](int32_t id) { return id >= 0 && static_cast<size_t>(id) < counts_.size(); };
  auto repeat = [&](int32_t id) {
    float& logit = input.logits[id];
    logit = logit > 0 ? logit / sampling.repetition_penalty : logit * sampling.repetition_penalty;
  };
  for (int32_t id : input.generated) {
    if (known(id)) ++counts_[id];
  }
  if (sampling.repetition_penalty != 1) {
    // -1 marks a prompt token that is done and was not generated.
    for (int32_t id : input.prompt) {
      if (!known(id) || counts_[id] != 0) continue;
      counts_[id] = -1;
      repeat(id);
    }
    for (int32_t id : input.prompt) {
      if (known(id) && counts_[id] < 0) counts_[id] = 0;
    }
  }
  for (int32_t id : input.generated) {
    if (!known(id) || counts_[id] == 0) continue;
    if (sampling.repetition_penalty != 1) repeat(id);
    input.logits[id] -=
        sampling.frequency_penalty * static_cast<float>(counts_[id]) + sampling.presence_penalty;
    counts_[id] = 0;
  }
}

int32_t Sampler::Draw(std::span<const float> logits, const Sampling& sampling, double uniform) {
  float best = MaxOf(logits);
  float inverse = 1.0f / sampling.temperature;
  // So cold that only ties with the best could come.
  if (!std::isfinite(inverse) || best == kMinusInfinity) return Greedy(logits);
  log_weights_.resize(logits.size());
  weights_.resize(logits.size());
  const float* from = logits.data();
  float* log_weights = log_weights_.data();
  float* weights = weights_.data();
  ForLanes(logits.size(), [=](size_t i, size_t) {
    log_weights[i] = (from[i] - best) * inverse;
    weights[i] = ExpOf(log_weights[i]);
  });
  int top_k = sampling.top_k > 0 && static_cast<size_t>(sampling.top_k) < logits.size()
                  ? sampling.top_k
                  : 0;
  bool nucleus = sampling.top_p < 1;
  if (top_k == 0 && !nucleus && sampling.min_p <= 0) return DrawFromAll(uniform);

  candidates_.clear();
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (weights_[i] > 0) candidates_.push_back(static_cast<int32_t>(i));
  }
  if (top_k > 0) KeepBest(static_cast<size_t>(top_k), std::numeric_limits<double>::infinity());
  if (nucleus) KeepBest(candidates_.size(), sampling.top_p * MassOfCandidates());
  // The best weighs 1, so min-p is a bound on the weight itself.
  std::erase_if(candidates_, [&](int32_t id) { return weights_[id] < sampling.min_p; });
  double target = uniform * MassOfCandidates(), sum = 0;
  for (int32_t id : candidates_) {
    sum += weights_[id];
    if (target < sum) return id;
  }
  return candidates_.back();
}

int32_t Sampler::DrawFromAll(double uniform) const {
  // Two passes over sums of chunks, so that the second touches one chunk only.
  constexpr size_t kChunk = 256;
  std::vector<double> sums;
  double mass = 0;
  for (size_t begin = 0; begin < weights_.size(); begin += kChunk) {
    size_t end = std::min(begin + kChunk, weights_.size());
    std::array<float, kLanes> lanes{};
    ForLanes(end - begin, [&](size_t i, size_t lane) { lanes[lane] += weights_[begin + i]; });
    double sum = 0;
    for (float lane : lanes) sum += lane;
    sums.push_back(sum);
    mass += sum;
  }
  double target = uniform * mass;
  size_t chunk = 0;
  while (chunk + 1 < sums.size() && target >= sums[chunk]) target -= sums[chunk++];
  size_t end = std::min((chunk + 1) * kChunk, weights_.size());
  size_t last = end;  // rounding may run past the chunk's end: then its last token with weight
  for (size_t i = chunk * kChunk; i < end; ++i) {
    if (weights_[i] <= 0) continue;
    last = i;
    target -= weights_[i];
    if (target < 0) break;
  }
  if (last < end) return static_cast<int32_t>(last);
  return static_cast<int32_t>(std::ranges::max_element(weights_) - weights_.begin());
}

double Sampler::MassOfCandidates() const {
  double mass = 0;
  for (int32_t id : candidates_) mass += weights_[id];
  return mass;
}

// Reduces candidates_ to the fewest best that are `most` tokens or reach `enough` mass; at least
// one. Bands of equal width over the log-weights: whole bands stay as they are, only the band where
// the cut falls is sorted.
void Sampler::KeepBest(size_t most, double enough) {
  constexpr int kBands = 1024;
  constexpr float kBandsPerNat = 16;
  auto band_of = [&](int32_t id) {
    float depth = -log_weights_[id] * kBandsPerNat;
    return depth < kBands - 1 ? static_cast<int>(depth) : kBands - 1;
  };
  std::array<size_t, kBands> counts{};
  std::array<double, kBands> masses{};
  for (int32_t id : candidates_) {
    int band = band_of(id);
    ++counts[band];
    masses[band] += weights_[id];
  }
  int cut = 0;
  size_t count = 0;
  double mass = 0;
  while (cut < kBands - 1 && count + counts[cut] < most && mass + masses[cut] < enough) {
    count += counts[cut];
    mass += masses[cut++];
  }
  auto in_whole_bands = [&](int32_t id) { return band_of(id) < cut; };
  auto beyond_cut = [&](int32_t id) { return band_of(id) > cut; };
  std::erase_if(candidates_, beyond_cut);
  auto band = std::ranges::stable_partition(candidates_, in_whole_bands);
  std::sort(band.begin(), band.end(), [&](int32_t a, int32_t b) {
    return log_weights_[a] > log_weights_[b] || (log_weights_[a] == log_weights_[b] && a < b);
  });
  size_t kept = candidates_.size() - band.size();
  while (kept < candidates_.size() && (kept == 0 || (kept < most && mass < enough))) {
    mass += weights_[candidates_[kept++]];
  }
  candidates_.resize(kept);
}

}  // namespace ashlar
