#include "serve/streamed_answer.h"

namespace ashlar {

// What a choice's stream begins with: the role, or the echoed prompt.
std::string StreamedAnswer::Opening(Choice& choice) {
  size_t index = static_cast<size_t>(choice.index);
  if (opened_.size() <= index) opened_.resize(index + 1);
  if (opened_[index]) return "";
  opened_[index] = true;
  if (request_.chat()) return RoleChunk(head_, choice.index);
  if (!request_.echo) return "";
  return TextChunk(head_, choice.index, EchoText(serving_, request_, choice),
                   choice.logprobs.Write(choice.prompt_logprobs, true));
}

bool StreamedAnswer::Add(Choice& choice, AnswerPiece piece) {
  if (!begun_) {
    HttpHeaders headers = headers_;
    headers.emplace_back("Content-Type", "text/event-stream; charset=utf-8");
    headers.emplace_back("Cache-Control", "no-cache");
    headers.emplace_back("X-Accel-Buffering", "no");
    responder_.Begin(200, headers);
    begun_ = true;
  }
  std::string out = Opening(choice);
  if (!piece.text.empty()) {
    out += TextChunk(head_, choice.index, piece.text, choice.logprobs.Write(piece.logprobs));
    piece.logprobs.clear();
  }
  if (choice.assembler.ended()) {
    // Tokens without text of their own have no other place left.
    Json rest = piece.logprobs.empty() ? Json(nullptr) : choice.logprobs.Write(piece.logprobs);
    out += FinishChunk(head_, choice.index, FinishWord(choice.assembler.reason()), std::move(rest));
  }
  return out.empty() || responder_.Write(out);
}

void StreamedAnswer::Finish(const Usage& usage) {
  if (request_.include_usage) responder_.Write(UsageChunk(head_, usage));
  responder_.Write(kSseDone);
  responder_.End();
}

// Clients look for this event, and take a bare end for success.
void StreamedAnswer::Fail(const ApiError& error) {
  responder_.Write(SseEvent(ErrorJson(error)));
  responder_.End();
}

void StreamedAnswer::End() { responder_.End(); }

}  // namespace ashlar
