// Strings to tokens and back, and chat templates: the C++ face of one Rust library. Reads no file.
// Every object may be used by any thread at once, except a Decoder, which belongs to one request.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ashlar {

// A GGUF's tokenizer arrays, borrowed for the call.
struct GgufVocabulary {
  std::string model;  // tokenizer.ggml.model: "gpt2" (byte-level BPE) or "llama" (SentencePiece)
  std::string pre;    // tokenizer.ggml.pre; an unknown one is refused by name
  std::span<const std::string> tokens;
  std::span<const double> scores;  // may be empty
  std::span<const int64_t>
      token_types;  // 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte
  std::span<const std::string> merges;  // may be empty for "llama"
  int32_t bos = -1, eos = -1;
  bool add_bos = false, add_eos = false, add_space_prefix = false;
};

class Tokenizer {
 public:
  static Result<std::unique_ptr<Tokenizer>> FromJson(std::string_view tokenizer_json);
  static Result<std::unique_ptr<Tokenizer>> FromGguf(const GgufVocabulary& vocabulary);
  ~Tokenizer();

  int32_t vocabulary_size() const;
  // `add_special`: what the tokenizer itself adds (BOS). Special tokens written in the text are
  // recognised either way.
  Result<std::vector<int32_t>> Encode(std::string_view text, bool add_special) const;
  Result<std::string> Decode(std::span<const int32_t> ids, bool skip_special) const;
  // The raw bytes that the token stands for (a byte token gives one byte, which may be no valid
  // UTF-8 by itself).
  std::string TokenBytes(int32_t id) const;
  std::optional<int32_t> TokenId(std::string_view piece) const;
  bool IsSpecial(int32_t id) const;

 private:
  friend class Decoder;
  Tokenizer() = default;
  void* handle_ = nullptr;
};

// Streaming decode: text comes out as soon as it is whole UTF-8 that later tokens cannot change.
class Decoder {
 public:
  Decoder(const Tokenizer& tokenizer, bool skip_special);
  ~Decoder();
  // What became final with this token; often "" for a part of a character.
  std::string Push(int32_t id);
  // The rest. An incomplete character at the end becomes one U+FFFD.
  std::string Finish();

 private:
  void* handle_ = nullptr;
};

class ChatTemplate {
 public:
  // `bos` and `eos` are the strings that the template may write.
  static Result<std::unique_ptr<ChatTemplate>> Compile(std::string_view source,
                                                       std::string_view bos, std::string_view eos);
  ~ChatTemplate();

  // `document` is the JSON object of variables: messages, tools, add_generation_prompt, and any
  // chat_template_kwargs. A refusal says whether the template itself raised (the client's fault) or
  // failed. Bounded in steps, depth and output.
  Result<std::string> Render(std::string_view document, int64_t max_output_bytes) const;

 private:
  ChatTemplate() = default;
  void* handle_ = nullptr;
};

}  // namespace ashlar
