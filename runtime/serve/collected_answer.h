// The answer of a request without `stream`: one body once every choice has ended. Belongs to one
// HTTP thread.
#pragma once

#include <deque>
#include <vector>

#include "engine/request.h"
#include "serve/choice.h"

namespace ashlar {

class CollectedAnswer {
 public:
  // Both outlive the answer.
  CollectedAnswer(const Serving& serving, const ApiRequest& request)
      : serving_(serving), request_(request) {}

  // What the choice's assembler has just made of the first of `ids`.
  void Add(const Choice& choice, AnswerPiece piece, const std::vector<int32_t>& ids);
  // The whole body. `prompts` are the request's, as ids.
  Json Body(const ResponseHead& head, std::deque<Choice>& choices,
            const std::vector<std::vector<int32_t>>& prompts, const Usage& usage);

 private:
  struct Part {
    std::string text;
    std::vector<TokenLogprob> logprobs;
    std::vector<int32_t> ids;
  };

  const Serving& serving_;
  const ApiRequest& request_;
  std::vector<Part> parts_;  // by choice
};

}  // namespace ashlar
