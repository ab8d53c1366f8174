// From one row of logits to one token. Pure: the same logits, history, settings and counter give
// the same token on any machine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/request.h"

namespace ashlar {

struct SampleInput {
  std::span<float> logits;             // [vocab], changed in place
  std::span<const int32_t> prompt;     // for the repetition penalty
  std::span<const int32_t> generated;  // for all three penalties
  std::span<const int32_t> banned;     // ids that may not come now (end ids before min_tokens)
  uint64_t seed = 0;                   // of the request
  uint64_t position = 0;               // tokens generated so far: the counter of the random stream
};

// Order: bias and bans, penalties, temperature, top-k, top-p, min-p, draw. Logprobs are of the
// distribution before temperature and cuts, after bias and penalties. Ties go to the lowest id.
TokenLogprob SampleToken(const SampleInput& input, const Sampling& sampling);

}  // namespace ashlar
