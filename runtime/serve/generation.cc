#include "serve/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <random>

namespace ashlar {
namespace {

using std::chrono::milliseconds;

// Entries of prompt logprobs that one request may ask for, over all prompts and choices.
constexpr int64_t kPromptLogprobEntries = 2'000'000;

std::string NewId(bool chat) {
  static thread_local std::mt19937_64 random{std::random_device{}()};
  return fmt::format("{}-{:016x}{:08x}", chat ? "chatcmpl" : "cmpl", random(),
                     static_cast<uint32_t>(random()));
}

double Seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

ApiError TooLong(std::string place, int64_t context, int64_t prompt, std::string asked) {
  return {ErrorCode::kContextLength,
          {std::move(place), fmt::format("{} prompt tokens{}", prompt, asked),
           fmt::format("at most {} tokens together, the context length of this model", context),
           "shorten the prompt or lower max_tokens"}};
}

}  // namespace

RequestLimits LimitsOf(const Serving& serving) {
  RequestLimits limits = serving.limits;
  limits.context_length = serving.plan.context_length;
  limits.vocabulary = serving.tokenizer.vocabulary_size();
  if (serving.plan.model.vocab > 0) {
    limits.vocabulary =
        static_cast<int32_t>(std::min<int64_t>(limits.vocabulary, serving.plan.model.vocab));
  }
  return limits;
}

Generation::~Generation() { CancelAll(); }

GenerationReport Generation::Run(HttpResponder& responder, const HttpHeaders& headers) {
  start_ = last_event_ = std::chrono::steady_clock::now();
  headers_ = headers;
  head_ = {NewId(request_.chat()), std::time(nullptr), request_.model, request_.chat(),
           request_.include_usage};
  std::optional<ApiError> error = Encode();
  if (!error) error = FitTokens();
  if (!error) error = Submit();
  if (!error) error = Pump(responder);
  report_.usage = CountUsage();
  if (client_gone_) {
    report_.outcome = Outcome::kClientGone;
    report_.status = 499;
    CancelAll();
    if (streaming_) responder.End();
    return report_;
  }
  if (error) {
    CancelAll();
    SendError(*error, responder);
    return report_;
  }
  if (request_.stream) {
    if (request_.include_usage) responder.Write(UsageChunk(head_, report_.usage));
    responder.Write(kSseDone);
    responder.End();
  } else {
    HttpHeaders all = headers_;
    all.emplace_back("Content-Type", "application/json");
    responder.Send(200, all, DumpJson(WholeJson()));
  }
  return report_;
}

// Fills prompts_.
std::optional<ApiError> Generation::Encode() {
  if (const auto* chat = std::get_if<ChatInput>(&request_.input)) {
    if (serving_.chat_template == nullptr) {
      return ApiError{ErrorCode::kTemplate,
                      {"messages", "this model has no chat template", "prompts on /v1/completions",
                       "write the prompt yourself"}};
    }
    // Room for any prompt that fits and for one that is said to be too long.
    int64_t room = 65536 + 16 * serving_.plan.context_length;
    Result<std::string> text = serving_.chat_template->Render(DumpJson(chat->document), room);
    if (!text) return ApiError{ErrorCode::kTemplate, text.problems().front()};
    return EncodeText(*text, "messages");
  }
  const auto& prompts = std::get<std::vector<Prompt>>(request_.input);
  for (size_t i = 0; i < prompts.size(); ++i) {
    if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompts[i])) {
      prompts_.push_back(*ids);
      continue;
    }
    std::string place = prompts.size() == 1 ? "prompt" : fmt::format("prompt[{}]", i);
    if (auto error = EncodeText(std::get<std::string>(prompts[i]), place)) return error;
  }
  return std::nullopt;
}

std::optional<ApiError> Generation::EncodeText(std::string_view text, const std::string& param) {
  // Far too long a text is refused before it costs its encoding: no token of any vocabulary that
  // we know stands for more than 256 bytes of ordinary text.
  int64_t least = static_cast<int64_t>(text.size()) / 256;
  if (least > serving_.plan.context_length) {
    return TooLong(param, serving_.plan.context_length, least, " or more");
  }
  Result<std::vector<int32_t>> ids = serving_.tokenizer.Encode(text, request_.add_special);
  if (!ids) {
    Problem problem = ids.problems().front();
    problem.place = param;
    return ApiError{ErrorCode::kInvalidValue, std::move(problem)};
  }
  if (ids->empty()) {
    return ApiError{ErrorCode::kInvalidValue,
                    {param, "it holds no token", "at least one token", "send some text"}};
  }
  prompts_.push_back(std::move(*ids));
  return std::nullopt;
}

// Sets max_tokens_; refuses what the context, the budget of tokens or that of logprobs cannot hold.
std::optional<ApiError> Generation::FitTokens() {
  const int64_t context = serving_.plan.context_length;
  int64_t longest = 0, total = 0;
  for (const auto& prompt : prompts_) {
    longest = std::max<int64_t>(longest, static_cast<int64_t>(prompt.size()));
    total += static_cast<int64_t>(prompt.size());
  }
  std::string place = request_.chat() ? "messages" : "prompt";
  const int64_t answers = request_.n * static_cast<int64_t>(prompts_.size());
  if (request_.max_tokens) {
    max_tokens_ = *request_.max_tokens;
    if (longest + max_tokens_ > context) {
      return TooLong(place, context, longest, fmt::format(" and max_tokens {}", max_tokens_));
    }
    if (answers > serving_.token_budget / max_tokens_) {
      return ApiError{ErrorCode::kInvalidValue,
                      {"n", fmt::format("{} answers of {} tokens", answers, max_tokens_),
                       fmt::format("at most {} tokens in one request", serving_.token_budget),
                       "ask for fewer or shorter answers"}};
    }
  } else {
    if (longest >= context) return TooLong(place, context, longest, "");
    int64_t fallback = request_.chat() ? context : 16;
    max_tokens_ = std::max<int64_t>(
        1, std::min({fallback, context - longest, serving_.token_budget / answers}));
  }
  // What waits of one request must fit the queue; a single long prompt always does.
  if (answers > 1 && total * request_.n > serving_.token_budget) {
    return ApiError{
        ErrorCode::kInvalidValue,
        {place, fmt::format("{} prompt tokens in {} answers", total * request_.n, answers),
         fmt::format("at most {} in one request", serving_.token_budget),
         "send fewer prompts at once"}};
  }
  if (answers > serving_.most_answers) {
    return ApiError{ErrorCode::kInvalidValue,
                    {place, fmt::format("{} answers", answers),
                     fmt::format("at most {} in one request", serving_.most_answers),
                     "send fewer prompts at once"}};
  }
  if (request_.min_tokens > max_tokens_) {
    return ApiError{ErrorCode::kInvalidValue,
                    {"min_tokens", std::to_string(request_.min_tokens),
                     fmt::format("at most max_tokens, {}", max_tokens_), "lower it"}};
  }
  int64_t entries = (request_.sampling.prompt_logprobs + 1) * total * request_.n;
  if (entries > kPromptLogprobEntries) {
    return ApiError{ErrorCode::kInvalidValue,
                    {"prompt_logprobs", fmt::format("{} entries", entries),
                     fmt::format("at most {} in one request", kPromptLogprobEntries),
                     "ask for fewer, or send shorter prompts"}};
  }
  return std::nullopt;
}

std::optional<ApiError> Generation::Submit() {
  for (size_t p = 0; p < prompts_.size(); ++p) {
    for (int i = 0; i < request_.n; ++i) {
      Choice& choice = choices_.emplace_back();
      choice.prompt = static_cast<int>(p);
      choice.events = std::make_shared<EventQueue>();
      choice.assembler = std::make_unique<AnswerAssembler>(serving_.tokenizer, request_);
      choice.logprobs = std::make_unique<LogprobWriter>(serving_.tokenizer, request_.chat(),
                                                        request_.sampling.logprobs);
      Request request;
      request.prompt = prompts_[p];
      request.sampling = request_.sampling;
      // Choices of one prompt differ although they share a seed.
      if (request.sampling.seed) *request.sampling.seed += static_cast<uint64_t>(i);
      request.max_tokens = static_cast<int>(max_tokens_);
      request.min_tokens = request_.min_tokens;
      request.stop_ids = request_.stop_ids;
      request.ignore_eos = request_.ignore_eos;
      request.cache_salt = request_.cache_salt;
      auto submitted = serving_.generator.Submit(std::move(request), choice.events);
      if (const auto* refusal = std::get_if<SubmitRefusal>(&submitted)) {
        ErrorCode code = *refusal == SubmitRefusal::kQueueFull  ? ErrorCode::kQueueFull
                         : *refusal == SubmitRefusal::kStopping ? ErrorCode::kDraining
                                                                : ErrorCode::kEngineFault;
        return ApiError{code, {"", std::string(Info(code).meaning), "", "try again later"}};
      }
      choice.id = std::get<uint64_t>(submitted);
      choice.submitted = true;
    }
  }
  return std::nullopt;
}

std::optional<ApiError> Generation::Pump(HttpResponder& responder) {
  // Long enough to sleep, short enough to notice a client that left within two steps of most
  // models; with several choices any of them may be next.
  const milliseconds patience(choices_.size() == 1 ? 20 : 5);
  while (true) {
    bool got = false;
    int waiting_for = -1;
    for (size_t i = 0; i < choices_.size(); ++i) {
      if (choices_[i].assembler->ended()) continue;
      waiting_for = static_cast<int>(i);
      while (auto event = choices_[i].events->Pop(milliseconds(0))) {
        got = true;
        if (auto error = Take(static_cast<int>(i), *event, responder)) return error;
        if (choices_[i].assembler->ended()) break;
      }
    }
    if (waiting_for < 0) return std::nullopt;
    if (client_gone_ || responder.ClientGone()) {
      client_gone_ = true;
      return std::nullopt;
    }
    if (ending_) {
      return ApiError{ErrorCode::kDraining,
                      {"", "the server is shutting down", "", "send the request again"}};
    }
    if (got || choices_[static_cast<size_t>(waiting_for)].assembler->ended()) continue;
    Choice& choice = choices_[static_cast<size_t>(waiting_for)];
    if (auto event = choice.events->Pop(patience)) {
      if (auto error = Take(waiting_for, *event, responder)) return error;
    }
  }
}

std::optional<ApiError> Generation::Take(int index, const Event& event, HttpResponder& responder) {
  Choice& choice = choices_[static_cast<size_t>(index)];
  Note(event);
  if (event.finish) choice.engine_done = true;
  choice.cached_tokens = std::max(choice.cached_tokens, event.cached_tokens);
  if (!event.prompt_logprobs.empty()) choice.prompt_logprobs = event.prompt_logprobs;
  const int before = choice.assembler->tokens();
  AnswerPiece piece = choice.assembler->Push(event);
  if (choice.assembler->ended() && !choice.assembler->stopped_by_string()) {
    FinishReason reason = choice.assembler->reason();
    if (reason == FinishReason::kError || reason == FinishReason::kCancelled) {
      ErrorCode code =
          reason == FinishReason::kError ? ErrorCode::kGeneration : ErrorCode::kDraining;
      std::string text = choice.assembler->error().empty() ? std::string(Info(code).meaning)
                                                           : choice.assembler->error();
      return ApiError{code, {"", std::move(text), "", "try again later"}};
    }
  }
  if (choice.assembler->stopped_by_string() && !choice.engine_done) {
    serving_.generator.Cancel(choice.id);
    choice.engine_done = true;
  }
  if (request_.stream) {
    Stream(index, std::move(piece), responder);
  } else {
    choice.text += piece.text;
    const int taken =
        std::min(choice.assembler->tokens() - before, static_cast<int>(event.ids.size()));
    choice.ids.insert(choice.ids.end(), event.ids.begin(), event.ids.begin() + taken);
    std::move(piece.logprobs.begin(), piece.logprobs.end(),
              std::back_inserter(choice.all_logprobs));
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

std::string Generation::EchoText(const Choice& choice) const {
  const auto& prompt =
      std::get<std::vector<Prompt>>(request_.input)[static_cast<size_t>(choice.prompt)];
  if (const auto* text = std::get_if<std::string>(&prompt)) return *text;
  Result<std::string> text =
      serving_.tokenizer.Decode(std::get<std::vector<int32_t>>(prompt), request_.skip_special);
  return text ? *text : "";
}

// What a choice's stream begins with: the role, or the echoed prompt.
std::string Generation::Opening(int index) {
  Choice& choice = choices_[static_cast<size_t>(index)];
  if (choice.opened) return "";
  choice.opened = true;
  if (request_.chat()) return RoleChunk(head_, index);
  if (!request_.echo) return "";
  return TextChunk(head_, index, EchoText(choice),
                   choice.logprobs->Write(choice.prompt_logprobs, true));
}

void Generation::Stream(int index, AnswerPiece piece, HttpResponder& responder) {
  Choice& choice = choices_[static_cast<size_t>(index)];
  std::string out;
  if (!streaming_) {
    HttpHeaders headers = headers_;
    headers.emplace_back("Content-Type", "text/event-stream; charset=utf-8");
    headers.emplace_back("Cache-Control", "no-cache");
    headers.emplace_back("X-Accel-Buffering", "no");
    responder.Begin(200, headers);
    streaming_ = true;
  }
  out += Opening(index);
  if (!piece.text.empty()) {
    out += TextChunk(head_, index, piece.text, choice.logprobs->Write(piece.logprobs));
    piece.logprobs.clear();
  }
  if (choice.assembler->ended()) {
    // Tokens without text of their own have no other place left.
    Json rest = piece.logprobs.empty() ? Json(nullptr) : choice.logprobs->Write(piece.logprobs);
    out += FinishChunk(head_, index, FinishWord(choice.assembler->reason()), std::move(rest));
  }
  if (!out.empty() && !responder.Write(out)) client_gone_ = true;
}

Json Generation::WholeJson() {
  std::vector<ChoiceResult> results;
  for (Choice& choice : choices_) {
    ChoiceResult& result = results.emplace_back();
    std::vector<TokenLogprob> tokens = std::move(choice.all_logprobs);
    if (request_.echo) {
      result.text = EchoText(choice);
      tokens.insert(tokens.begin(), choice.prompt_logprobs.begin(), choice.prompt_logprobs.end());
    }
    result.text += choice.text;
    bool prompt_first = request_.echo && !choice.prompt_logprobs.empty();
    result.logprobs = choice.logprobs->Write(tokens, prompt_first);
    if (request_.show_prompt_logprobs) {
      result.prompt_logprobs = PromptLogprobs(serving_.tokenizer, choice.prompt_logprobs);
    }
    if (request_.return_token_ids) {
      result.prompt_token_ids = prompts_[static_cast<size_t>(choice.prompt)];
      result.token_ids = choice.ids;
    }
    result.finish_reason = FinishWord(choice.assembler->reason());
  }
  return WholeAnswer(head_, results, report_.usage);
}

void Generation::CancelAll() {
  for (Choice& choice : choices_) {
    if (!choice.submitted || choice.engine_done) continue;
    serving_.generator.Cancel(choice.id);
    choice.engine_done = true;
  }
}

void Generation::SendError(const ApiError& error, HttpResponder& responder) {
  report_.outcome = Outcome::kError;
  report_.status = Info(error.code).status;
  if (streaming_) {
    // The only way left to say it: clients look for this event, and take a bare end for success.
    responder.Write(SseEvent(ErrorJson(error)));
    responder.End();
    return;
  }
  HttpHeaders headers = headers_;
  for (auto& header : ErrorHeaders(error.code)) headers.push_back(std::move(header));
  responder.Send(report_.status, headers, DumpJson(ErrorJson(error)));
}

// Each prompt counts once, however many answers it has.
Usage Generation::CountUsage() const {
  Usage usage;
  int last = -1;
  for (const Choice& choice : choices_) {
    usage.completion_tokens += choice.assembler->tokens();
    if (choice.prompt == last) continue;
    last = choice.prompt;
    usage.prompt_tokens +=
        static_cast<int64_t>(prompts_[static_cast<size_t>(choice.prompt)].size());
    usage.cached_tokens += choice.cached_tokens;
  }
  return usage;
}

}  // namespace ashlar
