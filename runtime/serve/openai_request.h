// The bodies of /v1/completions and /v1/chat/completions as one typed request, every field checked.
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.h"
#include "engine/request.h"
#include "serve/errors.h"

namespace ashlar {

// What a request may ask for. The constants are the defaults of docs/api.md; the rest comes from
// the model that is served.
struct RequestLimits {
  int messages = 2048;
  int prompts = 64;
  int choices = 16;  // n
  int logprobs = 20;
  int stops = 4;
  size_t stop_bytes = 256;
  int stop_ids = 128;
  int biases = 1024;
  size_t name_bytes = 256;  // of a model name, a cache salt
  int64_t context_length = 0;
  int32_t vocabulary = 0;
};

// Text to encode, or ids that are used as they are.
using Prompt = std::variant<std::string, std::vector<int32_t>>;

struct ChatInput {
  Json document;  // variables of the template: messages, add_generation_prompt, kwargs
};

struct ApiRequest {
  std::string model;
  std::variant<std::vector<Prompt>, ChatInput> input;

  Sampling sampling;  // `logprobs` and `prompt_logprobs` among it
  int n = 1;
  std::optional<int64_t> max_tokens;
  int min_tokens = 0;
  std::vector<int32_t> stop_ids;
  bool ignore_eos = false;
  std::string cache_salt;

  std::vector<std::string> stops;
  bool keep_stop = false;  // include_stop_str_in_output
  bool skip_special = true;
  bool add_special = true;  // the tokenizer's own, BOS; off for chat, whose template writes it
  bool echo = false;        // completions: the prompt comes first
  bool show_prompt_logprobs = false;
  bool return_token_ids = false;  // of the prompt and of the answer, beside the text

  bool stream = false;
  bool include_usage = false;

  bool chat() const { return std::holds_alternative<ChatInput>(input); }
};

using ParsedRequest = std::variant<ApiRequest, ApiError>;

ParsedRequest ParseCompletion(std::string_view body, const RequestLimits& limits);
ParsedRequest ParseChat(std::string_view body, const RequestLimits& limits);

}  // namespace ashlar
