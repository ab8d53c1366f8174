#include "serve/prompt_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace ashlar {
namespace {

// Entries of prompt logprobs that one request may ask for, over all prompts and choices.
constexpr int64_t kPromptLogprobEntries = 2'000'000;
constexpr int64_t kCompletionTokens = 16;  // of an answer to a prompt that asks for no number

ApiError TooLong(std::string place, int64_t context, int64_t prompt, std::string asked) {
  return {ErrorCode::kContextLength,
          {std::move(place), fmt::format("{} prompt tokens{}", prompt, asked),
           fmt::format("at most {} tokens together, the context length of this model", context),
           "shorten the prompt or lower max_tokens"}};
}

ApiError TooMuch(std::string place, std::string found, std::string allowed, std::string next) {
  return {ErrorCode::kInvalidValue,
          {std::move(place), std::move(found), std::move(allowed), std::move(next)}};
}

class Reader {
 public:
  Reader(const Serving& serving, const ApiRequest& request)
      : serving_(serving), request_(request), context_(serving.plan.context_length) {}

  std::optional<ApiError> Encode();
  std::optional<ApiError> FitContext();
  std::optional<ApiError> FitBudgets() const;
  PromptTokens& tokens() { return tokens_; }

 private:
  std::optional<ApiError> EncodeChat(const ChatInput& chat);
  std::optional<ApiError> EncodeText(std::string_view text, const std::string& place);
  std::string place() const { return request_.chat() ? "messages" : "prompt"; }
  int64_t answers() const { return request_.n * static_cast<int64_t>(tokens_.prompts.size()); }

  const Serving& serving_;
  const ApiRequest& request_;
  const int64_t context_;
  PromptTokens tokens_;
};

std::optional<ApiError> Reader::Encode() {
  if (const auto* chat = std::get_if<ChatInput>(&request_.input)) return EncodeChat(*chat);
  const auto& prompts = std::get<std::vector<Prompt>>(request_.input);
  for (size_t i = 0; i < prompts.size(); ++i) {
    if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompts[i])) {
      tokens_.prompts.push_back(*ids);
      continue;
    }
    std::string place = prompts.size() == 1 ? "prompt" : fmt::format("prompt[{}]", i);
    if (auto error = EncodeText(std::get<std::string>(prompts[i]), place)) return error;
  }
  return std::nullopt;
}

std::optional<ApiError> Reader::EncodeChat(const ChatInput& chat) {
  if (serving_.chat_template == nullptr) {
    return ApiError{ErrorCode::kTemplate,
                    {"messages", "this model has no chat template", "prompts on /v1/completions",
                     "write the prompt yourself"}};
  }
  // Room for any prompt that fits and for one that is said to be too long.
  int64_t room = 65536 + 16 * context_;
  Result<std::string> text = serving_.chat_template->Render(DumpJson(chat.document), room);
  if (!text) return ApiError{ErrorCode::kTemplate, text.problems().front()};
  return EncodeText(*text, "messages");
}

std::optional<ApiError> Reader::EncodeText(std::string_view text, const std::string& place) {
  // Far too long a text is refused before it costs its encoding: no token of any vocabulary that
  // we know stands for more than 256 bytes of ordinary text.
  int64_t least = static_cast<int64_t>(text.size()) / 256;
  if (least > context_) return TooLong(place, context_, least, " or more");
  Result<std::vector<int32_t>> ids = serving_.tokenizer.Encode(text, request_.add_special);
  if (!ids) {
    Problem problem = ids.problems().front();
    problem.place = place;
    return ApiError{ErrorCode::kInvalidValue, std::move(problem)};
  }
  if (ids->empty()) {
    return TooMuch(place, "it holds no token", "at least one token", "send some text");
  }
  tokens_.prompts.push_back(std::move(*ids));
  return std::nullopt;
}

// Sets max_tokens.
std::optional<ApiError> Reader::FitContext() {
  int64_t longest = 0;
  for (const auto& prompt : tokens_.prompts) {
    longest = std::max<int64_t>(longest, static_cast<int64_t>(prompt.size()));
  }
  if (request_.max_tokens) {
    tokens_.max_tokens = *request_.max_tokens;
    if (longest + tokens_.max_tokens <= context_) return std::nullopt;
    return TooLong(place(), context_, longest,
                   fmt::format(" and max_tokens {}", tokens_.max_tokens));
  }
  if (longest >= context_) return TooLong(place(), context_, longest, "");
  int64_t wanted = request_.chat() ? context_ : kCompletionTokens;
  tokens_.max_tokens = std::max<int64_t>(
      1, std::min({wanted, context_ - longest, serving_.token_budget / answers()}));
  return std::nullopt;
}

std::optional<ApiError> Reader::FitBudgets() const {
  const int64_t budget = serving_.token_budget;
  int64_t total = 0;
  for (const auto& prompt : tokens_.prompts) total += static_cast<int64_t>(prompt.size());
  if (request_.max_tokens && answers() > budget / tokens_.max_tokens) {
    return TooMuch("n", fmt::format("{} answers of {} tokens", answers(), tokens_.max_tokens),
                   fmt::format("at most {} tokens in one request", budget),
                   "ask for fewer or shorter answers");
  }
  // What waits of one request must fit the queue; a single long prompt always does.
  if (answers() > 1 && total * request_.n > budget) {
    return TooMuch(place(),
                   fmt::format("{} prompt tokens in {} answers", total * request_.n, answers()),
                   fmt::format("at most {} in one request", budget), "send fewer prompts at once");
  }
  if (answers() > serving_.most_answers) {
    return TooMuch(place(), fmt::format("{} answers", answers()),
                   fmt::format("at most {} in one request", serving_.most_answers),
                   "send fewer prompts at once");
  }
  if (request_.min_tokens > tokens_.max_tokens) {
    return TooMuch("min_tokens", std::to_string(request_.min_tokens),
                   fmt::format("at most max_tokens, {}", tokens_.max_tokens), "lower it");
  }
  int64_t entries = (request_.sampling.prompt_logprobs + 1) * total * request_.n;
  if (entries > kPromptLogprobEntries) {
    return TooMuch("prompt_logprobs", fmt::format("{} entries", entries),
                   fmt::format("at most {} in one request", kPromptLogprobEntries),
                   "ask for fewer, or send shorter prompts");
  }
  return std::nullopt;
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

std::variant<PromptTokens, ApiError> ReadPromptTokens(const Serving& serving,
                                                      const ApiRequest& request) {
  Reader reader(serving, request);
  std::optional<ApiError> error = reader.Encode();
  if (!error) error = reader.FitContext();
  if (!error) error = reader.FitBudgets();
  if (error) return std::move(*error);
  return std::move(reader.tokens());
}

}  // namespace ashlar
