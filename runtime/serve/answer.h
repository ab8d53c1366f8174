// One choice of an answer: ids from the engine become text, with stop strings, parts of characters
// and logprobs in step. Belongs to one HTTP thread.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "engine/request.h"
#include "serve/openai_request.h"
#include "serve/stop_matcher.h"
#include "text/text.h"

namespace ashlar {

// What became final: text, and the tokens that it is made of. A token goes out with the text that
// completes it; a token that ends the answer inside itself goes out if some of its text does.
struct AnswerPiece {
  std::string text;
  std::vector<TokenLogprob> logprobs;
};

class AnswerAssembler {
 public:
  AnswerAssembler(const Tokenizer& tokenizer, const ApiRequest& request);

  // Takes what an event brings. After the end, everything is ignored.
  AnswerPiece Push(const Event& event);

  // The answer is whole. While the engine still runs, it is to be cancelled.
  bool ended() const { return ended_; }
  bool stopped_by_string() const { return matcher_.stopped(); }
  FinishReason reason() const { return reason_; }
  const std::string& error() const { return error_; }
  // Generated tokens, up to the one that completed a stop string; an end id is not counted.
  int tokens() const { return tokens_; }

 private:
  struct Waiting {
    TokenLogprob logprob;
    size_t begin, end;  // bytes of the decoded text
  };

  void PushToken(int32_t id, const TokenLogprob* logprob, AnswerPiece& piece);
  void Emit(std::string text, AnswerPiece& piece);
  void ReleaseLogprobs(bool all, AnswerPiece& piece);

  Decoder decoder_;
  StopMatcher matcher_;
  const int min_tokens_;
  std::deque<Waiting> waiting_;
  size_t decoded_ = 0, emitted_ = 0;  // bytes
  int tokens_ = 0;
  bool ended_ = false;
  FinishReason reason_ = FinishReason::kStop;
  std::string error_;
};

}  // namespace ashlar
