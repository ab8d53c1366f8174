// A tokenizer small enough to read: ids 0 to 255 are the bytes themselves, then come the words
// given, then one special token, <|end|>.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/text.h"

namespace ashlar::test {

// How byte-level vocabularies write a byte: printable ones as themselves, the rest from U+0100 on.
inline std::string ByteLevel(std::string_view bytes) {
  auto printable = [](int byte) {
    return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  };
  std::string text;
  for (char c : bytes) {
    int byte = static_cast<unsigned char>(c);
    int code = byte;
    if (!printable(byte)) {
      code = 256;
      for (int other = 0; other < byte; ++other) code += printable(other) ? 0 : 1;
    }
    if (code < 0x80) {
      text += static_cast<char>(code);
    } else {
      text += static_cast<char>(0xc0 | (code >> 6));
      text += static_cast<char>(0x80 | (code & 0x3f));
    }
  }
  return text;
}

inline std::string TinyTokenizerJson(const std::vector<std::string>& words) {
  Json vocabulary = Json::object();
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary[ByteLevel(std::string(1, static_cast<char>(byte)))] = byte;
  }
  int32_t next = 256;
  for (const std::string& word : words) vocabulary[ByteLevel(word)] = next++;
  Json level = {{"type", "ByteLevel"},
                {"add_prefix_space", false},
                {"trim_offsets", true},
                {"use_regex", true}};
  Json end = {{"id", next},      {"content", "<|end|>"}, {"single_word", false}, {"lstrip", false},
              {"rstrip", false}, {"normalized", false},  {"special", true}};
  Json model = {{"type", "BPE"},
                {"dropout", nullptr},
                {"unk_token", nullptr},
                {"continuing_subword_prefix", nullptr},
                {"end_of_word_suffix", nullptr},
                {"fuse_unk", false},
                {"byte_fallback", false},
                {"ignore_merges", false},
                {"vocab", vocabulary},
                {"merges", Json::array()}};
  return Json({{"version", "1.0"},
               {"truncation", nullptr},
               {"padding", nullptr},
               {"added_tokens", Json::array({end})},
               {"normalizer", nullptr},
               {"pre_tokenizer", level},
               {"post_processor", nullptr},
               {"decoder", level},
               {"model", model}})
      .dump();
}

inline std::unique_ptr<Tokenizer> TinyTokenizer(const std::vector<std::string>& words) {
  auto tokenizer = Tokenizer::FromJson(TinyTokenizerJson(words));
  return std::move(tokenizer).value();
}

// The bytes of `text` as ids.
inline std::vector<int32_t> ByteIds(std::string_view text) {
  std::vector<int32_t> ids;
  for (char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

inline constexpr std::string_view kTinyTemplate =
    "{% for message in messages %}{{ '<' + message.role + '>' + message.content }}"
    "{% if message.tool_call_id %}{{ '[' + message.tool_call_id + ']' }}{% endif %}"
    "{% for call in message.tool_calls or [] %}"
    "{{ '(' + call.id + ' ' + call.function.name + ' ' + call.function.arguments | tojson + ')' }}"
    "{% endfor %}{{ '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";

}  // namespace ashlar::test
