// Strings to tokens and back, and chat templates: the C++ face of one Rust library. It reads no
// file: it is handed arrays and text.
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

// Handles of rust/ashlar_text.h.
struct tok_handle;
struct tok_decoder;
struct tmpl_handle;

namespace ashlar {

// A GGUF's tokenizer arrays, borrowed for the call.
struct GgufVocabulary {
  std::string model;  // tokenizer.ggml.model: "gpt2" (byte-level BPE) or "llama" (SentencePiece)
  // tokenizer.ggml.pre; an unknown one is refused by name. "" means "default"; "llama" has none.
  std::string pre;
  std::span<const std::string> tokens;
  std::span<const double> scores;  // may be empty
  // 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte. May be empty: then only bos
  // and eos are special.
  std::span<const int64_t> token_types;
  std::span<const std::string> merges;  // may be empty for "llama": then made from the scores
  int32_t bos = -1, eos = -1;
  // As stated in the file. Not stated: add_bos and add_space_prefix hold for "llama" only.
  std::optional<bool> add_bos, add_eos, add_space_prefix;
};

class Tokenizer {
 public:
  // Byte-level and SentencePiece-like files. Refused by name, with what is supported: unknown
  // component types. Refused with index or line: repeated merge rules and tokens, rules without
  // tokens, ids without a token.
  static Result<std::unique_ptr<Tokenizer>> FromJson(std::string_view tokenizer_json);
  static Result<std::unique_ptr<Tokenizer>> FromGguf(const GgufVocabulary& vocabulary);
  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  int32_t vocabulary_size() const;
  // `add_special`: what the tokenizer itself adds (BOS). A rendered chat prompt has written its
  // own: encode it without. Special tokens written in the text are recognised either way.
  Result<std::vector<int32_t>> Encode(std::string_view text, bool add_special) const;
  // A whole text. Bytes that are no UTF-8 become U+FFFD, one for each cut character; the space that
  // Encode puts in front for some vocabularies is taken away. Ids outside the vocabulary add
  // nothing.
  Result<std::string> Decode(std::span<const int32_t> ids, bool skip_special) const;
  // The raw bytes that the token stands for (a byte token gives one byte, which may be no valid
  // UTF-8 by itself). "" outside the vocabulary.
  std::string TokenBytes(int32_t id) const;
  // `piece` as the vocabulary spells it.
  std::optional<int32_t> TokenId(std::string_view piece) const;
  bool IsSpecial(int32_t id) const;

  const tok_handle* handle() const { return handle_; }

 private:
  explicit Tokenizer(tok_handle* handle) : handle_(handle) {}
  tok_handle* handle_;
};

// Streaming decode: text comes out as soon as it is whole UTF-8 that later tokens cannot change.
// All outputs together are the bytes of all tokens, decoded with U+FFFD for what is no UTF-8; it
// continues a text, so a leading space stays. May outlive its tokenizer.
class Decoder {
 public:
  Decoder(const Tokenizer& tokenizer, bool skip_special);
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  // What became final with this token; often "" for a part of a character.
  std::string Push(int32_t id);
  // The rest. An incomplete character at the end becomes one U+FFFD.
  std::string Finish();

 private:
  tok_decoder* handle_;
};

// A Jinja template with Hugging Face's settings and functions. Variables that the document does not
// set: bos_token and eos_token as given, tools and documents none, add_generation_prompt false.
// strftime_now is in UTC.
class ChatTemplate {
 public:
  // `bos` and `eos` are the strings that the template may write.
  static Result<std::unique_ptr<ChatTemplate>> Compile(std::string_view source,
                                                       std::string_view bos, std::string_view eos);
  ~ChatTemplate();
  ChatTemplate(const ChatTemplate&) = delete;
  ChatTemplate& operator=(const ChatTemplate&) = delete;

  // `document` is the JSON object of variables: messages, tools, add_generation_prompt, and any
  // chat_template_kwargs. A refusal by raise_exception, the client's fault, has the place
  // "messages"; the template's own failure has "chat template:LINE"; a limit (1,000,000 steps, 64
  // nested calls, 200 ms of processor time, `max_output_bytes`) has "chat template".
  Result<std::string> Render(std::string_view document, int64_t max_output_bytes) const;

 private:
  explicit ChatTemplate(tmpl_handle* handle) : handle_(handle) {}
  tmpl_handle* handle_;
};

}  // namespace ashlar
