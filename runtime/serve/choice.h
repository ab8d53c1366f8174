// One of the answers that a request gets: its place in the request, in the engine and in the text.
// Belongs to one HTTP thread.
#pragma once

#include <string>
#include <vector>

#include "serve/answer.h"
#include "serve/openai_response.h"
#include "serve/serving.h"

namespace ashlar {

struct Choice {
  Choice(const Serving& serving, const ApiRequest& request, int at, int of_prompt)
      : index(at),
        prompt(of_prompt),
        assembler(serving.tokenizer, request),
        logprobs(serving.tokenizer, request.chat(), request.sampling.logprobs) {}

  const int index;
  const int prompt;      // which one of the request's
  uint64_t id = 0;       // in the engine
  bool running = false;  // there
  AnswerAssembler assembler;
  LogprobWriter logprobs;
  std::vector<TokenLogprob> prompt_logprobs;
  int cached_tokens = 0;
};

// The text of the prompt, for `echo`.
std::string EchoText(const Serving& serving, const ApiRequest& request, const Choice& choice);

}  // namespace ashlar
