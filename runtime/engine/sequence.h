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

  std::vector<int32_t> tokens;  // the prompt, then what was generated
  int prompt_tokens = 0;
  int computed = 0;                               // leading tokens whose KV is in the cache
  std::vector<int32_t> ends;                      // ids that stop it
  std::chrono::steady_clock::time_point arrived;  // when it was submitted
  uint64_t seed = 0;

  std::vector<BlockTable> tables;  // by KV group; empty while waiting
  PrefixPath path;
  bool admitted = false;     // has run before: a later look-up is not counted again
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
  // Prompt tokens are scored, which needs logits at every position of the prompt.
  bool scores_prompt() const { return request.sampling.prompt_logprobs >= 0 && !prompt_sent; }
};

}  // namespace ashlar
