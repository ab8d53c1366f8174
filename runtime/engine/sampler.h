// From one row of logits to one token. Pure: the same logits, history, settings and counter give
// the same token on any machine.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/request.h"

namespace ashlar {

struct SampleInput {
  std::span<float> logits;             // [vocab], finite; changed in place
  std::span<const int32_t> prompt;     // for the repetition penalty
  std::span<const int32_t> generated;  // for all three penalties
  std::span<const int32_t> banned;     // ids that may not come now (end ids before min_tokens)
  uint64_t seed = 0;                   // of the request
  uint64_t position = 0;               // tokens generated so far: the counter of the random stream
};

// Order: bias and bans, penalties, temperature, top-k, top-p, min-p, draw. Logprobs are of the
// distribution before temperature and cuts, after bias and penalties. Ties go to the lowest id.
// Top-p keeps the fewest best tokens whose mass within top-k reaches it, and at least one. The
// result's logprob and top are filled when sampling.logprobs >= 0. No pass sorts the vocabulary.
class Sampler {
 public:
  TokenLogprob Sample(const SampleInput& input, const Sampling& sampling);

  // Log-probability of `token` in untouched logits, with the `top` best beside it.
  TokenLogprob Score(std::span<const float> logits, int32_t token, int top);

 private:
  void Penalize(const SampleInput& input, const Sampling& sampling);
  int32_t Draw(std::span<const float> logits, const Sampling& sampling, double uniform);
  int32_t DrawFromAll(double uniform) const;
  void KeepBest(size_t most, double enough);
  double MassOfCandidates() const;

  // Scratch, kept between calls.
  std::vector<int32_t> counts_;      // [vocab], zero between calls
  std::vector<float> log_weights_;   // (logit - max) / temperature
  std::vector<float> weights_;       // its exponential
  std::vector<int32_t> candidates_;  // ids still in the draw
};

// Whether no number of the row is an infinity or NaN.
bool AllFinite(std::span<const float> logits);

// Uniform in [0, 1), a function of its arguments alone.
double UniformAt(uint64_t seed, uint64_t position);
// A seed for a request that brings none.
uint64_t MixSeed(uint64_t seed, uint64_t request);

}  // namespace ashlar
