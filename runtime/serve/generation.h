// Carries out one parsed request: prompts to ids, submit, events to an answer. Belongs to one HTTP
// thread; what still runs when it goes is cancelled.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http/server.h"
#include "serve/answer.h"
#include "serve/errors.h"
#include "serve/openai_response.h"
#include "serve/serving.h"

namespace ashlar {

// How it ended, for metrics; kClientGone has no answer.
enum class Outcome { kAnswered, kError, kClientGone };

struct GenerationReport {
  Outcome outcome = Outcome::kAnswered;
  int status = 200;
  Usage usage;
  std::optional<double> first_token_seconds;
  std::vector<double> token_gaps_seconds;  // between later events, a token
};

class Generation {
 public:
  // `ending` says that the server gives up on running requests. All outlive the generation.
  Generation(const Serving& serving, const ApiRequest& request, const std::atomic<bool>& ending)
      : serving_(serving), request_(request), ending_(ending) {}
  Generation(const Generation&) = delete;
  ~Generation();

  // Runs to the end and answers on `responder`, the error of anything that fails among it.
  // `headers` are sent with every answer.
  GenerationReport Run(HttpResponder& responder, const HttpHeaders& headers);

 private:
  struct Choice {
    int prompt = 0;  // index into prompts_
    uint64_t id = 0;
    bool submitted = false;
    bool engine_done = false;
    std::shared_ptr<EventQueue> events;
    std::unique_ptr<AnswerAssembler> assembler;
    std::unique_ptr<LogprobWriter> logprobs;
    std::vector<TokenLogprob> prompt_logprobs;
    std::vector<TokenLogprob> all_logprobs;  // without streaming
    std::string text;                        // without streaming
    std::vector<int32_t> ids;                // without streaming
    int cached_tokens = 0;
    bool opened = false;  // its first chunk has gone out
  };

  std::optional<ApiError> Encode();
  std::optional<ApiError> EncodeText(std::string_view text, const std::string& param);
  std::optional<ApiError> FitTokens();
  std::optional<ApiError> Submit();
  // Events until every choice has ended; the error that ends all of them.
  std::optional<ApiError> Pump(HttpResponder& responder);
  std::optional<ApiError> Take(int index, const Event& event, HttpResponder& responder);
  void Note(const Event& event);
  void Stream(int index, AnswerPiece piece, HttpResponder& responder);
  std::string Opening(int index);
  std::string EchoText(const Choice& choice) const;
  Json WholeJson();
  void CancelAll();
  void SendError(const ApiError& error, HttpResponder& responder);
  Usage CountUsage() const;

  const Serving& serving_;
  const ApiRequest& request_;
  const std::atomic<bool>& ending_;
  HttpHeaders headers_;
  ResponseHead head_;
  std::vector<std::vector<int32_t>> prompts_;
  int64_t max_tokens_ = 0;
  std::vector<Choice> choices_;
  bool streaming_ = false;  // the head of a stream has gone out
  bool client_gone_ = false;
  std::chrono::steady_clock::time_point start_, last_event_;
  GenerationReport report_;
};

}  // namespace ashlar
