#include "serve/generation.h"

#include <algorithm>
#include <ctime>

#include "serve/new_id.h"

namespace ashlar {
namespace {

// Long enough to sleep, short enough to notice a client that left within two steps of most models.
constexpr std::chrono::milliseconds kPatience(20);

double Seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

Generation::Generation(const Serving& serving, const ApiRequest& request,
                       const std::atomic<bool>& ending, const HttpHeaders& headers,
                       HttpResponder& responder)
    : serving_(serving),
      request_(request),
      ending_(ending),
      headers_(headers),
      responder_(responder),
      head_{NewId(request.chat() ? "chatcmpl" : "cmpl"), std::time(nullptr), request.model,
            request.chat(), request.include_usage},
      streamed_(serving, request, head_, headers, responder),
      collected_(serving, request) {}

Generation::~Generation() { CancelAll(); }

GenerationReport Generation::Run() {
  start_ = last_event_ = std::chrono::steady_clock::now();
  std::optional<ApiError> error;
  auto tokens = ReadPromptTokens(serving_, request_);
  if (auto* refused = std::get_if<ApiError>(&tokens)) {
    error = std::move(*refused);
  } else {
    tokens_ = std::move(std::get<PromptTokens>(tokens));
    error = Submit();
    if (!error) error = Pump();
  }
  report_.usage = CountUsage();
  if (client_gone_) {
    report_.status = 499;
    CancelAll();
    if (streamed_.begun()) streamed_.End();
  } else if (error) {
    CancelAll();
    report_.status = Info(error->code).status;
    if (streamed_.begun()) {
      streamed_.Fail(*error);
    } else {
      report_.error = std::move(error);
    }
  } else if (request_.stream) {
    streamed_.Finish(report_.usage);
  } else {
    HttpHeaders all = headers_;
    all.emplace_back("Content-Type", "application/json");
    Json body = collected_.Body(head_, choices_, tokens_.prompts, report_.usage);
    responder_.Send(200, all, DumpJson(body));
  }
  return report_;
}

std::optional<ApiError> Generation::Submit() {
  for (size_t p = 0; p < tokens_.prompts.size(); ++p) {
    for (int i = 0; i < request_.n; ++i) {
      int index = static_cast<int>(choices_.size());
      Choice& choice = choices_.emplace_back(serving_, request_, index, static_cast<int>(p));
      Request request;
      request.prompt = tokens_.prompts[p];
      request.choice = index;
      request.sampling = request_.sampling;
      // Choices of one prompt differ although they share a seed.
      if (request.sampling.seed) *request.sampling.seed += static_cast<uint64_t>(i);
      request.max_tokens = static_cast<int>(tokens_.max_tokens);
      request.min_tokens = request_.min_tokens;
      request.stop_ids = request_.stop_ids;
      request.ignore_eos = request_.ignore_eos;
      request.cache_salt = request_.cache_salt;
      auto submitted = serving_.generator.Submit(std::move(request), events_);
      if (const auto* refusal = std::get_if<SubmitRefusal>(&submitted)) {
        ErrorCode code = *refusal == SubmitRefusal::kQueueFull  ? ErrorCode::kQueueFull
                         : *refusal == SubmitRefusal::kStopping ? ErrorCode::kDraining
                                                                : ErrorCode::kEngineFault;
        return ApiError{code, {"", std::string(Info(code).meaning), "", "try again later"}};
      }
      choice.id = std::get<uint64_t>(submitted);
      choice.running = true;
    }
  }
  return std::nullopt;
}

std::optional<ApiError> Generation::Pump() {
  while (ended_ < choices_.size()) {
    if (auto event = events_->Pop(kPatience)) {
      if (auto error = Take(*event)) return error;
      if (ended_ == choices_.size()) break;
    } else if (std::string fault = serving_.generator.stats().fault; !fault.empty()) {
      // A device that hangs ends nothing by itself.
      return ApiError{ErrorCode::kEngineFault, {"", std::move(fault), "", "try another replica"}};
    }
    if (client_gone_ || responder_.ClientGone()) {
      client_gone_ = true;
      break;
    }
    if (ending_) {
      return ApiError{ErrorCode::kDraining,
                      {"", "the server is shutting down", "", "send the request again"}};
    }
  }
  return std::nullopt;
}

std::optional<ApiError> Generation::Take(const Event& event) {
  Choice& choice = choices_[static_cast<size_t>(event.choice)];
  if (event.finish) choice.running = false;
  if (choice.assembler.ended()) return std::nullopt;
  Note(event);
  choice.cached_tokens = std::max(choice.cached_tokens, event.cached_tokens);
  if (!event.prompt_logprobs.empty()) choice.prompt_logprobs = event.prompt_logprobs;
  AnswerPiece piece = choice.assembler.Push(event);
  if (choice.assembler.stopped_by_string()) {
    if (choice.running) serving_.generator.Cancel(choice.id);
    choice.running = false;
  } else if (choice.assembler.ended()) {
    FinishReason reason = choice.assembler.reason();
    if (reason == FinishReason::kError || reason == FinishReason::kCancelled) {
      bool failed = reason == FinishReason::kError;
      ErrorCode code = failed ? ErrorCode::kGeneration : ErrorCode::kDraining;
      std::string text = choice.assembler.error();
      if (text.empty()) text = Info(code).meaning;
      return ApiError{code, {"", std::move(text), "", "try again later"}};
    }
  }
  if (choice.assembler.ended()) ++ended_;
  if (!request_.stream) {
    collected_.Add(choice, std::move(piece), event.ids);
  } else if (!streamed_.Add(choice, std::move(piece))) {
    client_gone_ = true;
  }
  return std::nullopt;
}

// Times for metrics.
void Generation::Note(const Event& event) {
  if (event.ids.empty()) return;
  auto now = std::chrono::steady_clock::now();
  if (!report_.first_token_seconds) {
    report_.first_token_seconds = Seconds(now - start_);
  } else if (choices_.size() == 1) {
    report_.token_gaps_seconds.push_back(Seconds(now - last_event_) /
                                         static_cast<double>(event.ids.size()));
  }
  last_event_ = now;
}

void Generation::CancelAll() {
  for (Choice& choice : choices_) {
    if (choice.running) serving_.generator.Cancel(choice.id);
    choice.running = false;
  }
}

// Each prompt counts once, however many answers it has.
Usage Generation::CountUsage() const {
  Usage usage;
  int last = -1;
  for (const Choice& choice : choices_) {
    usage.completion_tokens += choice.assembler.tokens();
    if (choice.prompt == last) continue;
    last = choice.prompt;
    usage.prompt_tokens +=
        static_cast<int64_t>(tokens_.prompts[static_cast<size_t>(choice.prompt)].size());
    usage.cached_tokens += choice.cached_tokens;
  }
  return usage;
}

}  // namespace ashlar
