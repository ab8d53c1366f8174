// The prompts of a request as ids, and how long their answers may become. Pure.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "serve/errors.h"
#include "serve/openai_request.h"
#include "serve/serving.h"

namespace ashlar {

struct PromptTokens {
  std::vector<std::vector<int32_t>> prompts;  // none is empty
  int64_t max_tokens = 0;                     // of each answer
};

// Renders the template and encodes; refuses what the context, the budget of tokens or that of
// logprobs cannot hold.
std::variant<PromptTokens, ApiError> ReadPromptTokens(const Serving& serving,
                                                      const ApiRequest& request);

}  // namespace ashlar
