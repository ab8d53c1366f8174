// Carries out one parsed request: prompts to ids, submit, events to an answer. Belongs to one HTTP
// thread; what still runs when it goes is cancelled.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "http/server.h"
#include "serve/collected_answer.h"
#include "serve/errors.h"
#include "serve/prompt_tokens.h"
#include "serve/streamed_answer.h"

namespace ashlar {

// How it ended, for metrics and the log.
struct GenerationReport {
  int status = 200;               // 499: the client left and got no answer
  std::optional<ApiError> error;  // is still to be answered: nothing has gone out
  Usage usage;
  std::optional<double> first_token_seconds;
  std::vector<double> token_gaps_seconds;  // between later events, a token
};

class Generation {
 public:
  // `ending` says that the server gives up on running requests. `headers` are sent with every
  // answer. All outlive the generation.
  Generation(const Serving& serving, const ApiRequest& request, const std::atomic<bool>& ending,
             const HttpHeaders& headers, HttpResponder& responder);
  Generation(const Generation&) = delete;
  ~Generation();

  // Runs to the end and answers, unless the report says that the caller has to.
  GenerationReport Run();

 private:
  std::optional<ApiError> Submit();
  // Events until every choice has ended; the error that ends all of them.
  std::optional<ApiError> Pump();
  std::optional<ApiError> Take(const Event& event);
  void Note(const Event& event);
  void CancelAll();
  Usage CountUsage() const;

  const Serving& serving_;
  const ApiRequest& request_;
  const std::atomic<bool>& ending_;
  const HttpHeaders& headers_;
  HttpResponder& responder_;
  const ResponseHead head_;
  StreamedAnswer streamed_;
  CollectedAnswer collected_;
  PromptTokens tokens_;
  std::shared_ptr<EventQueue> events_ = std::make_shared<EventQueue>();
  std::deque<Choice> choices_;
  size_t ended_ = 0;  // choices whose answer is whole
  bool client_gone_ = false;
  std::chrono::steady_clock::time_point start_, last_event_;
  GenerationReport report_;
};

}  // namespace ashlar
