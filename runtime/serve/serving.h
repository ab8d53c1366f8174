// What is served once a model is ready: borrowed parts, immutable, used by every HTTP thread.
#pragma once

#include <cstdint>
#include <string>

#include "plan/plan.h"
#include "serve/generator.h"
#include "serve/openai_request.h"
#include "text/text.h"

namespace ashlar {

// Everything referred to outlives the server.
struct Serving {
  Generator& generator;
  const Plan& plan;
  const Tokenizer& tokenizer;
  const ChatTemplate* chat_template = nullptr;  // none: chat requests are refused
  std::string model_name;
  int64_t token_budget = 200'000;  // n * prompts * max_tokens of one request
  int64_t most_answers = 1024;     // n * prompts of one request
  RequestLimits limits = {};       // what the spec sets; the model's own are filled in by LimitsOf
};

// The limits of requests: the spec's and the model's.
RequestLimits LimitsOf(const Serving& serving);

}  // namespace ashlar
