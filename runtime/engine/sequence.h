// One request as the engine thread carries it through its steps.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/request.h"
#include "kv/block_table.h"
#include "kv/prefix_cache.h"

namespace ashlar {

struct Sequence {
  uint64_t id = 0;  // order of arrival
  Request request;  // its prompt has moved to `tokens`
  std::shared_ptr<EventQueue> events;

  // The prompt, then what was generated. The last `pending` are being sampled on the device: -1 - r
  // stands for the id in row r of the step under way.
  std::vector<int32_t> tokens;
  int pending = 0;
  int prompt_tokens = 0;
  int computed = 0;                               // leading tokens whose KV is in the cache
  std::vector<int32_t> ends;                      // ids that stop it
  std::chrono::steady_clock::time_point arrived;  // when it was submitted
  uint64_t seed = 0;

  std::vector<BlockTable> tables;  // by KV group; empty while waiting
  PrefixPath path;
  int admissions = 0;        // how often it began to run; a later look-up is not counted again
  int cached_tokens = 0;     // of the prompt, found when first admitted
  bool prompt_sent = false;  // prompt_logprobs went out
  std::vector<TokenLogprob> prompt_logprobs;

  int generated() const { return static_cast<int>(tokens.size()) - prompt_tokens; }
  int remaining() const { return static_cast<int>(tokens.size()) - computed; }
  std::span<const int32_t> prompt() const {
    return {tokens.data(), static_cast<size_t>(prompt_tokens)};
  }
  std::span<const int32_t> output() const {
    return std::span(tokens).subspan(static_cast<size_t>(prompt_tokens));
  }
  bool Ends(int32_t token) const { return std::ranges::find(ends, token) != ends.end(); }
  // Sampled up to its limit, though it has not been seen to end.
  bool full(int64_t context_tokens) const {
    return pending > 0 && (generated() >= request.max_tokens ||
                           static_cast<int64_t>(tokens.size()) >= context_tokens);
  }
  // Whether the next token hangs on the logits and a draw alone, so that the host needs no logits.
  bool plain() const {
    const Sampling& s = request.sampling;
    return s.logprobs < 0 && !scores_prompt() && s.repetition_penalty == 1 &&
           s.presence_penalty == 0 && s.frequency_penalty == 0 && s.logit_bias.empty() &&
           generated() >= request.min_tokens && request.max_tokens > 0;
  }
  // Prompt tokens are scored, which needs logits at every position of the prompt.
  bool scores_prompt() const { return request.sampling.prompt_logprobs >= 0 && !prompt_sent; }
};

}  // namespace ashlar
