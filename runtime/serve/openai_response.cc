#include "serve/openai_response.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ashlar {
namespace {

Json UsageJson(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}}};
}

Json Object(const ResponseHead& head, bool chunk) {
  std::string_view object =
      !head.chat ? "text_completion" : (chunk ? "chat.completion.chunk" : "chat.completion");
  return {{"id", head.id},
          {"object", object},
          {"created", head.created},
          {"model", head.model},
          {"system_fingerprint", nullptr}};
}

std::string Chunk(const ResponseHead& head, Json choices, Json usage) {
  Json chunk = Object(head, true);
  chunk["choices"] = std::move(choices);
  if (head.include_usage) chunk["usage"] = std::move(usage);
  return SseEvent(chunk);
}

std::string ChoiceChunk(const ResponseHead& head, int index, std::string_view key, Json content,
                        Json logprobs, Json finish_reason) {
  Json choice = {{"index", index}};
  choice[std::string(key)] = std::move(content);
  choice["logprobs"] = std::move(logprobs);
  choice["finish_reason"] = std::move(finish_reason);
  return Chunk(head, Json::array({std::move(choice)}), nullptr);
}

int64_t Characters(std::string_view bytes) {
  return std::count_if(bytes.begin(), bytes.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

Json Bytes(std::string_view bytes) {
  Json list = Json::array();
  for (char c : bytes) list.push_back(static_cast<unsigned char>(c));
  return list;
}

Json ChatEntry(std::string_view bytes, float logprob) {
  return {
      {"token", PrintableToken(bytes)}, {"logprob", WireLogprob(logprob)}, {"bytes", Bytes(bytes)}};
}

}  // namespace

// By the table of well-formed sequences in the Unicode standard (3-7).
bool IsValidUtf8(std::string_view bytes) {
  size_t i = 0;
  auto at = [&](size_t index) { return static_cast<unsigned char>(bytes[index]); };
  while (i < bytes.size()) {
    unsigned char lead = at(i);
    size_t more = lead < 0x80                    ? 0
                  : lead >= 0xc2 && lead <= 0xdf ? 1
                  : (lead & 0xf0) == 0xe0        ? 2
                  : lead >= 0xf0 && lead <= 0xf4 ? 3
                                                 : 4;
    if (more == 4 || i + more >= bytes.size()) return false;
    for (size_t k = 1; k <= more; ++k) {
      unsigned char low = 0x80, high = 0xbf;
      if (k == 1 && lead == 0xe0) low = 0xa0;
      if (k == 1 && lead == 0xed) high = 0x9f;
      if (k == 1 && lead == 0xf0) low = 0x90;
      if (k == 1 && lead == 0xf4) high = 0x8f;
      if (at(i + k) < low || at(i + k) > high) return false;
    }
    i += more + 1;
  }
  return true;
}

std::string PrintableToken(std::string_view bytes) {
  if (IsValidUtf8(bytes)) return std::string(bytes);
  std::string text = "bytes:";
  for (char c : bytes) text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return text;
}

double WireLogprob(float logprob) {
  return std::isnan(logprob) ? -9999.0 : std::clamp<double>(logprob, -9999.0, 0.0);
}

Json LogprobWriter::Write(std::span<const TokenLogprob> tokens, bool first_is_unknown) {
  if (top_ < 0) return nullptr;
  return chat_ ? WriteChat(tokens) : WriteCompletion(tokens, first_is_unknown);
}

Json LogprobWriter::WriteChat(std::span<const TokenLogprob> tokens) const {
  Json content = Json::array();
  for (const TokenLogprob& token : tokens) {
    Json entry = ChatEntry(tokenizer_.TokenBytes(token.id), token.logprob);
    Json top = Json::array();
    for (size_t i = 0; i < token.top.size() && static_cast<int>(i) < top_; ++i) {
      top.push_back(ChatEntry(tokenizer_.TokenBytes(token.top[i].first), token.top[i].second));
    }
    entry["top_logprobs"] = std::move(top);
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

Json LogprobWriter::WriteCompletion(std::span<const TokenLogprob> tokens, bool first_is_unknown) {
  Json names = Json::array(), logprobs = Json::array(), tops = Json::array(),
       offsets = Json::array();
  for (size_t i = 0; i < tokens.size(); ++i) {
    const TokenLogprob& token = tokens[i];
    std::string bytes = tokenizer_.TokenBytes(token.id);
    names.push_back(PrintableToken(bytes));
    offsets.push_back(offset_);
    offset_ += Characters(bytes);
    if (i == 0 && first_is_unknown) {
      logprobs.push_back(nullptr);
      tops.push_back(nullptr);
      continue;
    }
    logprobs.push_back(WireLogprob(token.logprob));
    Json top = Json::object();
    for (size_t k = 0; k < token.top.size() && static_cast<int>(k) < top_; ++k) {
      auto [id, logprob] = token.top[k];
      // Two tokens may print alike, a byte and a letter; the second is named by its id.
      std::string name = PrintableToken(tokenizer_.TokenBytes(id));
      if (top.contains(name)) name = fmt::format("token_id:{}", id);
      top[name] = WireLogprob(logprob);
    }
    tops.push_back(std::move(top));
  }
  return {{"tokens", std::move(names)},
          {"token_logprobs", std::move(logprobs)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(offsets)}};
}

Json PromptLogprobs(const Tokenizer& tokenizer, std::span<const TokenLogprob> tokens) {
  Json list = Json::array();
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i == 0) {
      list.push_back(nullptr);
      continue;
    }
    Json entry = Json::object();
    auto add = [&](int32_t id, float logprob, Json rank) {
      entry[std::to_string(id)] = {{"logprob", WireLogprob(logprob)},
                                   {"rank", std::move(rank)},
                                   {"decoded_token", PrintableToken(tokenizer.TokenBytes(id))}};
    };
    const TokenLogprob& token = tokens[i];
    add(token.id, token.logprob, nullptr);  // of unknown rank unless it is among the best
    for (size_t k = 0; k < token.top.size(); ++k)
      add(token.top[k].first, token.top[k].second, k + 1);
    list.push_back(std::move(entry));
  }
  return list;
}

std::string_view FinishWord(FinishReason reason) {
  return reason == FinishReason::kLength ? "length" : "stop";
}

Json WholeAnswer(const ResponseHead& head, std::span<const ChoiceResult> choices,
                 const Usage& usage) {
  Json answer = Object(head, false);
  Json list = Json::array();
  for (size_t i = 0; i < choices.size(); ++i) {
    const ChoiceResult& result = choices[i];
    Json choice = {{"index", i}};
    if (head.chat) {
      choice["message"] = {{"role", "assistant"}, {"content", result.text}, {"refusal", nullptr}};
    } else {
      choice["text"] = result.text;
    }
    choice["logprobs"] = result.logprobs;
    choice["finish_reason"] = result.finish_reason;
    if (!result.prompt_logprobs.is_null()) choice["prompt_logprobs"] = result.prompt_logprobs;
    if (!result.token_ids.is_null()) {
      // A chat request has one prompt for all its choices.
      (head.chat ? answer : choice)["prompt_token_ids"] = result.prompt_token_ids;
      choice["token_ids"] = result.token_ids;
    }
    list.push_back(std::move(choice));
  }
  answer["choices"] = std::move(list);
  answer["usage"] = UsageJson(usage);
  return answer;
}

std::string SseEvent(const Json& json) { return "data: " + DumpJson(json) + "\n\n"; }

std::string RoleChunk(const ResponseHead& head, int index) {
  return ChoiceChunk(head, index, "delta", {{"role", "assistant"}, {"content", ""}}, nullptr,
                     nullptr);
}

std::string TextChunk(const ResponseHead& head, int index, std::string_view text, Json logprobs) {
  if (!head.chat) return ChoiceChunk(head, index, "text", text, std::move(logprobs), nullptr);
  return ChoiceChunk(head, index, "delta", {{"content", text}}, std::move(logprobs), nullptr);
}

std::string FinishChunk(const ResponseHead& head, int index, std::string_view reason,
                        Json logprobs) {
  if (!head.chat) return ChoiceChunk(head, index, "text", "", std::move(logprobs), reason);
  return ChoiceChunk(head, index, "delta", Json::object(), std::move(logprobs), reason);
}

std::string UsageChunk(const ResponseHead& head, const Usage& usage) {
  return Chunk(head, Json::array(), UsageJson(usage));
}

}  // namespace ashlar
