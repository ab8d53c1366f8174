#include "serve/answer.h"

#include <utility>

namespace ashlar {

AnswerAssembler::AnswerAssembler(const Tokenizer& tokenizer, const ApiRequest& request)
    : decoder_(tokenizer, request.skip_special),
      matcher_(request.stops, request.keep_stop),
      min_tokens_(request.min_tokens) {}

AnswerPiece AnswerAssembler::Push(const Event& event) {
  AnswerPiece piece;
  for (size_t i = 0; i < event.ids.size() && !ended_; ++i) {
    PushToken(event.ids[i], i < event.logprobs.size() ? &event.logprobs[i] : nullptr, piece);
  }
  if (ended_ || !event.finish) return piece;
  ended_ = true;
  reason_ = *event.finish;
  error_ = event.error;
  std::string rest = decoder_.Finish();
  decoded_ += rest.size();
  Emit(matcher_.Push(rest), piece);
  Emit(matcher_.Finish(), piece);
  ReleaseLogprobs(true, piece);
  return piece;
}

void AnswerAssembler::PushToken(int32_t id, const TokenLogprob* logprob, AnswerPiece& piece) {
  std::string text = decoder_.Push(id);
  size_t begin = decoded_;
  decoded_ += text.size();
  if (logprob != nullptr) waiting_.push_back({*logprob, begin, decoded_});
  ++tokens_;
  // Before min_tokens nothing stops an answer, and what was said before cannot begin a match.
  Emit(tokens_ <= min_tokens_ ? std::move(text) : matcher_.Push(text), piece);
  if (matcher_.stopped()) {
    ended_ = true;
    ReleaseLogprobs(true, piece);
  } else if (!piece.text.empty()) {
    ReleaseLogprobs(false, piece);
  }
}

void AnswerAssembler::Emit(std::string text, AnswerPiece& piece) {
  emitted_ += text.size();
  piece.text += text;
}

void AnswerAssembler::ReleaseLogprobs(bool all, AnswerPiece& piece) {
  while (!waiting_.empty()) {
    Waiting& next = waiting_.front();
    bool whole = next.end <= emitted_;
    if (!whole && !all) return;
    // After a stop string, tokens that only brought text behind the cut are no part of the answer.
    bool visible = whole || next.begin < emitted_ || !matcher_.stopped();
    if (visible) piece.logprobs.push_back(std::move(next.logprob));
    waiting_.pop_front();
  }
}

}  // namespace ashlar
