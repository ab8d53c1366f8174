#include "serve/openai_request.h"

#include <fmt/format.h>

#include <limits>

#include "serve/chat_messages.h"
#include "serve/field_reader.h"
#include "serve/other_fields.h"
#include "serve/prompt_fields.h"

namespace ashlar {
namespace {

constexpr int64_t kMostTokens = std::numeric_limits<int32_t>::max();

// The body as an object, or why not.
std::variant<Json, ApiError> ReadBody(std::string_view body) {
  Result<Json> json = ParseJson(body, "body");
  if (!json) return ApiError{ErrorCode::kInvalidJson, json.problems().front()};
  if (!json->is_object()) {
    return ApiError{ErrorCode::kInvalidJson,
                    {"body", Quoted(*json), "one JSON object", "send {\"model\": ..., ...}"}};
  }
  return std::move(*json);
}

void ReadSampling(FieldReader& fields, const RequestLimits& limits, Sampling& sampling) {
  auto set = [](auto& target, const auto& value) {
    if (value) target = static_cast<std::remove_reference_t<decltype(target)>>(*value);
  };
  set(sampling.temperature, fields.Number("temperature", 0, 2));
  set(sampling.top_p, fields.Number("top_p", 0, 1, true));
  set(sampling.min_p, fields.Number("min_p", 0, 1));
  if (auto top_k = fields.Integer("top_k", -1, kMostTokens)) {
    sampling.top_k = *top_k < 0 ? 0 : static_cast<int>(*top_k);  // -1 and 0 both mean all
  }
  set(sampling.presence_penalty, fields.Number("presence_penalty", -2, 2));
  set(sampling.frequency_penalty, fields.Number("frequency_penalty", -2, 2));
  set(sampling.repetition_penalty, fields.Number("repetition_penalty", 0, 10, true));
  if (auto seed = fields.Integer("seed", std::numeric_limits<int64_t>::min(),
                                 std::numeric_limits<int64_t>::max())) {
    sampling.seed = static_cast<uint64_t>(*seed);
  }
  if (auto prompt = fields.Integer("prompt_logprobs", 0, limits.logprobs)) {
    sampling.prompt_logprobs = static_cast<int>(*prompt);
  }
  ReadLogitBias(fields, limits, sampling);
}

void ReadStream(FieldReader& fields, ApiRequest& request) {
  request.stream = fields.Boolean("stream").value_or(false);
  const Json* options = fields.Find("stream_options");
  if (options == nullptr) return;
  if (!options->is_object()) {
    fields.Fail(ErrorCode::kInvalidType, "stream_options", Quoted(*options) + " is no object",
                "an object with include_usage", "send {\"include_usage\": true}");
    return;
  }
  if (!request.stream) {
    fields.Fail(ErrorCode::kInvalidValue, "stream_options", "it stands beside stream: false",
                "stream_options only with stream: true", "leave it out");
    return;
  }
  FieldReader inner(*options, "stream_options.");
  request.include_usage = inner.Boolean("include_usage").value_or(false);
  inner.Boolean("include_obfuscation");  // padding against observers of packet sizes: not done
  if (inner.Boolean("continuous_usage_stats").value_or(false)) {
    inner.Fail(ErrorCode::kUnsupported, "continuous_usage_stats", "true",
               "usage once, in the last chunk", "use include_usage");
  }
  inner.RefuseUnknown({});
  fields.Adopt(inner);
}

// Both names of one limit. Absent and null mean the default; 0 would ask for nothing.
void ReadMaxTokens(FieldReader& fields, ApiRequest& request) {
  auto old_name = fields.Integer("max_tokens", 1, kMostTokens);
  auto new_name = fields.Integer("max_completion_tokens", 1, kMostTokens);
  if (old_name && new_name && *old_name != *new_name) {
    fields.Fail(ErrorCode::kInvalidValue, "max_tokens",
                fmt::format("{} beside max_completion_tokens {}", *old_name, *new_name),
                "one of the two, or both alike", "leave max_tokens out");
  }
  request.max_tokens = new_name ? new_name : old_name;
}

// Everything that both routes have in common.
void ReadCommon(FieldReader& fields, const RequestLimits& limits, ApiRequest& request) {
  if (auto model = fields.String("model", limits.name_bytes)) {
    request.model = *model;
  } else {
    fields.Fail(ErrorCode::kMissing, "model", "it is absent", "the name that /v1/models lists",
                "add it");
  }
  ReadSampling(fields, limits, request.sampling);
  ReadMaxTokens(fields, request);
  request.n = static_cast<int>(fields.Integer("n", 1, limits.choices).value_or(1));
  auto best_of = fields.Integer("best_of", 1, limits.choices);
  if (best_of && *best_of != request.n) {
    fields.Fail(ErrorCode::kUnsupported, "best_of",
                fmt::format("{} beside n {}", *best_of, request.n), "best_of equal to n",
                "leave it out");
  }
  request.min_tokens = static_cast<int>(fields.Integer("min_tokens", 0, kMostTokens).value_or(0));
  if (request.max_tokens && request.min_tokens > *request.max_tokens) {
    fields.Fail(ErrorCode::kInvalidValue, "min_tokens",
                fmt::format("{} is above max_tokens {}", request.min_tokens, *request.max_tokens),
                "at most max_tokens", "lower it");
  }
  request.ignore_eos = fields.Boolean("ignore_eos").value_or(false);
  request.cache_salt = fields.String("cache_salt", limits.name_bytes).value_or("");
  request.keep_stop = fields.Boolean("include_stop_str_in_output").value_or(false);
  request.skip_special = fields.Boolean("skip_special_tokens").value_or(true);
  ReadStops(fields, limits, request);
  ReadStream(fields, request);
  request.show_prompt_logprobs = request.sampling.prompt_logprobs >= 0;
  if (request.stream && request.show_prompt_logprobs) {
    fields.Fail(ErrorCode::kUnsupported, "prompt_logprobs", "it stands beside stream: true",
                "prompt_logprobs only without streaming", "leave one of them out");
  }
  request.return_token_ids = fields.Boolean("return_token_ids").value_or(false);
  if (request.stream && request.return_token_ids) {
    fields.Fail(ErrorCode::kUnsupported, "return_token_ids", "it stands beside stream: true",
                "return_token_ids only without streaming", "leave one of them out");
  }
}

void ReadChatLogprobs(FieldReader& fields, const RequestLimits& limits, ApiRequest& request) {
  bool wanted = fields.Boolean("logprobs").value_or(false);
  auto top = fields.Integer("top_logprobs", 0, limits.logprobs);
  if (top && *top > 0 && !wanted) {
    fields.Fail(ErrorCode::kInvalidValue, "top_logprobs", "it stands without logprobs: true",
                "top_logprobs only with logprobs: true", "add logprobs: true");
  }
  if (wanted) request.sampling.logprobs = static_cast<int>(top.value_or(0));
}

void ReadCompletionLogprobs(FieldReader& fields, const RequestLimits& limits, ApiRequest& request) {
  if (auto top = fields.Integer("logprobs", 0, limits.logprobs)) {
    request.sampling.logprobs = static_cast<int>(*top);
  }
  request.echo = fields.Boolean("echo").value_or(false);
  if (request.echo && request.sampling.logprobs >= 0) {
    request.sampling.prompt_logprobs =
        std::max(request.sampling.prompt_logprobs, request.sampling.logprobs);
  }
}

ParsedRequest Finish(FieldReader& fields, ApiRequest request, Endpoint endpoint) {
  ReadOtherFields(fields, endpoint);
  if (fields.failed()) return *fields.error();
  return request;
}

}  // namespace

ParsedRequest ParseCompletion(std::string_view text, const RequestLimits& limits) {
  auto body = ReadBody(text);
  if (auto* error = std::get_if<ApiError>(&body)) return std::move(*error);
  FieldReader fields(std::get<Json>(body));
  ApiRequest request;
  ReadCommon(fields, limits, request);
  ReadCompletionLogprobs(fields, limits, request);
  request.add_special = fields.Boolean("add_special_tokens").value_or(true);
  request.input = ReadPrompts(fields, limits);
  return Finish(fields, std::move(request), Endpoint::kCompletions);
}

ParsedRequest ParseChat(std::string_view text, const RequestLimits& limits) {
  auto body = ReadBody(text);
  if (auto* error = std::get_if<ApiError>(&body)) return std::move(*error);
  FieldReader fields(std::get<Json>(body));
  ApiRequest request;
  ReadCommon(fields, limits, request);
  ReadChatLogprobs(fields, limits, request);
  request.add_special = fields.Boolean("add_special_tokens").value_or(false);
  request.input = ChatInput{ReadChatDocument(fields, limits)};
  return Finish(fields, std::move(request), Endpoint::kChat);
}

}  // namespace ashlar
