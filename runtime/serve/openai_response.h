// The answers of the OpenAI API as JSON, byte by byte as its clients read them. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/request.h"
#include "text/text.h"

namespace ashlar {

// What every object of one answer repeats.
struct ResponseHead {
  std::string id;  // "chatcmpl-..." or "cmpl-..."
  int64_t created = 0;
  std::string model;
  bool chat = false;
  bool include_usage = false;  // of a stream: every chunk has the key
};

struct Usage {
  int64_t prompt_tokens = 0, completion_tokens = 0, cached_tokens = 0;
};

struct ChoiceResult {
  std::string text;
  Json logprobs;                     // null, or as LogprobWriter gives it
  Json prompt_logprobs;              // null unless asked for
  Json prompt_token_ids, token_ids;  // null unless asked for
  std::string_view finish_reason;
};

// Entries of one choice in the form of its route; keeps the offset between chunks.
class LogprobWriter {
 public:
  // `top`: alternatives asked for; -1: none, and Write gives null.
  LogprobWriter(const Tokenizer& tokenizer, bool chat, int top)
      : tokenizer_(tokenizer), chat_(chat), top_(top) {}
  // `first_is_unknown`: entry 0 is the first token of an echoed prompt, which nothing predicted.
  Json Write(std::span<const TokenLogprob> tokens, bool first_is_unknown = false);

 private:
  Json WriteChat(std::span<const TokenLogprob> tokens) const;
  Json WriteCompletion(std::span<const TokenLogprob> tokens, bool first_is_unknown);

  const Tokenizer& tokenizer_;
  bool chat_;
  int top_;
  int64_t offset_ = 0;  // characters
};

// The bytes as text where they are valid UTF-8, else "bytes:\xe2\x8c".
std::string PrintableToken(std::string_view bytes);
bool IsValidUtf8(std::string_view bytes);
// A logprob as JSON can carry it: at least -9999.
double WireLogprob(float logprob);
// [null, {"id": {"logprob", "rank", "decoded_token"}, ...}, ...]
Json PromptLogprobs(const Tokenizer& tokenizer, std::span<const TokenLogprob> tokens);

std::string_view FinishWord(FinishReason reason);

// One body.
Json WholeAnswer(const ResponseHead& head, std::span<const ChoiceResult> choices,
                 const Usage& usage);

// Server-sent events, each with its "data: " and blank line.
std::string SseEvent(const Json& json);
inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";
std::string RoleChunk(const ResponseHead& head, int index);
std::string TextChunk(const ResponseHead& head, int index, std::string_view text, Json logprobs);
std::string FinishChunk(const ResponseHead& head, int index, std::string_view reason,
                        Json logprobs);
std::string UsageChunk(const ResponseHead& head, const Usage& usage);

}  // namespace ashlar
