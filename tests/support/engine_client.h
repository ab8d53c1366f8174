// What an HTTP thread does with an engine, and requests made from a seed.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace ashlar {

// All events of one request, put together.
struct Answer {
  std::vector<int32_t> ids;
  std::vector<TokenLogprob> logprobs, prompt_logprobs;
  std::optional<FinishReason> finish;
  std::optional<int32_t> stop_id;
  int cached_tokens = 0;
  std::string error;
  int ends = 0;  // events with `finish`

  void Add(Event event) {
    ids.insert(ids.end(), event.ids.begin(), event.ids.end());
    std::ranges::move(event.logprobs, std::back_inserter(logprobs));
    std::ranges::move(event.prompt_logprobs, std::back_inserter(prompt_logprobs));
    cached_tokens = std::max(cached_tokens, event.cached_tokens);
    if (!event.finish) return;
    finish = event.finish;
    stop_id = event.stop_id;
    error = event.error;
    ++ends;
  }
};

inline Answer Wait(EventQueue& events) {
  Answer answer;
  while (!answer.finish) {
    auto event = events.Pop(std::chrono::seconds(60));
    if (!event) {
      ADD_FAILURE() << "no event in a minute";
      break;
    }
    answer.Add(std::move(*event));
  }
  return answer;
}

struct Pending {
  uint64_t id = 0;
  std::shared_ptr<EventQueue> events = std::make_shared<EventQueue>();
};
inline Pending Submit(Engine& engine, Request request) {
  Pending pending;
  auto outcome = engine.Submit(std::move(request), pending.events);
  if (const auto* id = std::get_if<uint64_t>(&outcome)) {
    pending.id = *id;
  } else {
    ADD_FAILURE() << "the request was refused";
  }
  return pending;
}
inline Answer Ask(Engine& engine, Request request) {
  return Wait(*Submit(engine, std::move(request)).events);
}

// Requests over `vocab` ids, many of which begin alike, with every sampling setting used by some.
inline std::vector<Request> RandomRequests(unsigned seed, int count, int64_t vocab,
                                           int longest_prompt, int most_tokens) {
  std::mt19937 random(seed);
  auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::vector<int32_t> common;
  for (int i = 0; i < longest_prompt; ++i) common.push_back(below(static_cast<int>(vocab)));
  std::vector<Request> requests;
  for (int i = 0; i < count; ++i) {
    Request request;
    int length = 1 + below(longest_prompt);
    int shared = below(2) == 0 ? below(length + 1) : 0;
    request.prompt.assign(common.begin(), common.begin() + shared);
    while (static_cast<int>(request.prompt.size()) < length) {
      request.prompt.push_back(below(static_cast<int>(vocab)));
    }
    request.max_tokens = 1 + below(most_tokens);
    request.min_tokens = below(3) == 0 ? below(request.max_tokens + 1) : 0;
    request.ignore_eos = below(3) == 0;
    if (below(4) == 0) request.cache_salt = std::string(1, static_cast<char>('a' + below(2)));
    if (below(4) == 0) request.stop_ids = {below(static_cast<int>(vocab))};
    Sampling& sampling = request.sampling;
    sampling.temperature = below(2) == 0 ? 0.0f : 0.8f;
    sampling.seed = random();
    if (below(3) == 0) sampling.top_k = 1 + below(20);
    if (below(3) == 0) sampling.top_p = 0.9f;
    if (below(4) == 0) sampling.min_p = 0.02f;
    if (below(4) == 0) sampling.repetition_penalty = 1.2f;
    if (below(4) == 0) sampling.presence_penalty = 0.5f;
    if (below(4) == 0) sampling.frequency_penalty = 0.3f;
    if (below(4) == 0) sampling.logit_bias = {{below(static_cast<int>(vocab)), 2.0f}};
    if (below(4) == 0) sampling.logprobs = below(4);
    if (below(6) == 0) sampling.prompt_logprobs = below(3);
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace ashlar
