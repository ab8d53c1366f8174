// Fields beyond those that are carried out: some are read and ignored, some would change the answer
// in a way that this build cannot, all others have no meaning.
#pragma once

#include <array>
#include <string_view>

#include "serve/field_reader.h"

namespace ashlar {

enum class Endpoint { kCompletions, kChat };

// Sent by clients and frameworks; leaving them unheeded changes no token.
inline constexpr std::array<std::string_view, 12> kIgnoredFields = {"user",
                                                                    "metadata",
                                                                    "store",
                                                                    "service_tier",
                                                                    "prompt_cache_key",
                                                                    "prompt_cache_retention",
                                                                    "safety_identifier",
                                                                    "parallel_tool_calls",
                                                                    "request_id",
                                                                    "session_id",
                                                                    "spaces_between_special_tokens",
                                                                    "detailed_usage"};

// Refused unless the value is one that asks for nothing; null always is.
struct RefusedField {
  std::string_view name;
  std::string_view neutral;  // JSON list of values that are taken
  std::string_view what;     // that this build does not do
};
inline constexpr std::array<RefusedField, 35> kRefusedFields = {{
    {"tools", "[[]]", "tool calls"},
    {"tool_choice", R"(["none","auto"])", "tool calls"},
    {"functions", "[[]]", "tool calls"},
    {"function_call", R"(["none","auto"])", "tool calls"},
    {"response_format", R"([{"type":"text"}])", "structured output"},
    {"structured_outputs", "[{}]", "structured output"},
    {"guided_json", "[]", "structured output"},
    {"guided_regex", "[]", "structured output"},
    {"guided_choice", "[]", "structured output"},
    {"guided_grammar", "[]", "structured output"},
    {"grammar", R"([""])", "structured output"},
    {"modalities", R"([["text"]])", "output other than text"},
    {"audio", "[]", "output other than text"},
    {"prediction", "[]", "predicted outputs"},
    {"web_search_options", "[]", "web search"},
    {"reasoning_effort", "[]", "reasoning levels"},
    {"reasoning", "[]", "reasoning levels"},
    {"thinking_token_budget", "[]", "reasoning levels"},
    {"verbosity", R"(["medium"])", "verbosity levels"},
    {"suffix", R"([""])", "insertion before a suffix"},
    {"chat_template", "[]", "templates sent in a request"},
    {"documents", "[[]]", "documents beside messages"},
    {"continue_final_message", "[false]", "continuing a message"},
    {"bad_words", "[[]]", "forbidden words"},
    {"allowed_token_ids", "[]", "allowed token ids"},
    {"use_beam_search", "[false]", "beam search"},
    {"length_penalty", "[1, 1.0]", "beam search"},
    {"early_stopping", "[false]", "beam search"},
    {"truncate_prompt_tokens", "[]", "cutting a prompt"},
    {"return_tokens_as_token_ids", "[false]", "token ids in answers"},
    {"logprob_token_ids", "[]", "logprobs of chosen ids"},
    {"priority", "[0]", "priorities"},
    {"kv_transfer_params", "[]", "KV transfer between servers"},
    {"lora_request", "[]", "adapters"},
    {"mm_processor_kwargs", "[]", "input other than text"},
}};

// Refuses what is left of the body.
void ReadOtherFields(FieldReader& fields, Endpoint endpoint);

}  // namespace ashlar
