#include <cstring>

#include "text/convert.h"
#include "text/sanitizer.h"
#include "text/text.h"

namespace ashlar {
namespace {

constexpr std::string_view kDefaultPre = "default";

std::vector<ashlar_bytes> BorrowAll(std::span<const std::string> texts) {
  std::vector<ashlar_bytes> borrowed;
  borrowed.reserve(texts.size());
  for (const std::string& text : texts) borrowed.push_back(Borrow(text));
  return borrowed;
}

std::vector<int32_t> TakeIds(ashlar_buffer buffer) {
  static_assert(sizeof(int32_t) == sizeof(uint32_t));
  std::vector<int32_t> ids(buffer.size / sizeof(int32_t));
  if (!ids.empty()) std::memcpy(ids.data(), buffer.data, buffer.size);
  ashlar_buffer_free(buffer);
  return ids;
}

// Ids cross unsigned; a negative one becomes an id outside every vocabulary.
uint32_t Unsigned(int32_t id) { return static_cast<uint32_t>(id); }

}  // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::FromJson(std::string_view tokenizer_json) {
  const UninstrumentedCall call;
  tok_handle* handle = nullptr;
  err_fault* error = nullptr;
  if (tok_from_json(Borrow(tokenizer_json), &handle, &error) != ASHLAR_OK) {
    return TakeProblem(error);
  }
  return std::unique_ptr<Tokenizer>(new Tokenizer(handle));
}

Result<std::unique_ptr<Tokenizer>> Tokenizer::FromGguf(const GgufVocabulary& vocabulary) {
  const std::vector<ashlar_bytes> tokens = BorrowAll(vocabulary.tokens);
  const std::vector<ashlar_bytes> merges = BorrowAll(vocabulary.merges);
  const std::string_view pre =
      vocabulary.pre.empty() ? kDefaultPre : std::string_view(vocabulary.pre);
  const bool sentencepiece = vocabulary.model == "llama";

  tok_vocabulary raw{};
  raw.model = Borrow(vocabulary.model);
  raw.pre = Borrow(pre);
  raw.tokens = tokens.data();
  raw.token_count = tokens.size();
  raw.scores = vocabulary.scores.data();
  raw.score_count = vocabulary.scores.size();
  raw.types = vocabulary.token_types.data();
  raw.type_count = vocabulary.token_types.size();
  raw.merges = merges.data();
  raw.merge_count = merges.size();
  raw.bos = vocabulary.bos;
  raw.eos = vocabulary.eos;
  raw.add_bos = vocabulary.add_bos.value_or(sentencepiece && vocabulary.bos >= 0);
  raw.add_eos = vocabulary.add_eos.value_or(false);
  raw.add_space_prefix = vocabulary.add_space_prefix.value_or(sentencepiece);

  const UninstrumentedCall call;
  tok_handle* handle = nullptr;
  err_fault* error = nullptr;
  if (tok_from_gguf(&raw, &handle, &error) != ASHLAR_OK) return TakeProblem(error);
  return std::unique_ptr<Tokenizer>(new Tokenizer(handle));
}

Tokenizer::~Tokenizer() {
  const UninstrumentedCall call;
  tok_free(handle_);
}

int32_t Tokenizer::vocabulary_size() const { return static_cast<int32_t>(tok_size(handle_)); }

Result<std::vector<int32_t>> Tokenizer::Encode(std::string_view text, bool add_special) const {
  const UninstrumentedCall call;
  ashlar_buffer ids{};
  err_fault* error = nullptr;
  if (tok_encode(handle_, Borrow(text), add_special, &ids, &error) != ASHLAR_OK) {
    return TakeProblem(error);
  }
  return TakeIds(ids);
}

Result<std::string> Tokenizer::Decode(std::span<const int32_t> ids, bool skip_special) const {
  const UninstrumentedCall call;
  ashlar_buffer text{};
  err_fault* error = nullptr;
  const auto* raw = reinterpret_cast<const uint32_t*>(ids.data());
  if (tok_decode(handle_, raw, ids.size(), skip_special, &text, &error) != ASHLAR_OK) {
    return TakeProblem(error);
  }
  return TakeString(text);
}

std::string Tokenizer::TokenBytes(int32_t id) const {
  return std::string(View(tok_bytes(handle_, Unsigned(id))));
}

std::optional<int32_t> Tokenizer::TokenId(std::string_view piece) const {
  const int64_t id = tok_id(handle_, Borrow(piece));
  if (id < 0) return std::nullopt;
  return static_cast<int32_t>(id);
}

bool Tokenizer::IsSpecial(int32_t id) const { return tok_is_special(handle_, Unsigned(id)); }

Decoder::Decoder(const Tokenizer& tokenizer, bool skip_special) {
  const UninstrumentedCall call;
  handle_ = tok_decoder_new(tokenizer.handle(), skip_special);
}

Decoder::~Decoder() {
  const UninstrumentedCall call;
  tok_decoder_free(handle_);
}

// Decoding has no input that it refuses: a fault here is a bug of the library.
std::string Decoder::Push(int32_t id) {
  const UninstrumentedCall call;
  ashlar_bytes text{};
  Check(tok_decoder_push(handle_, Unsigned(id), &text, nullptr) == ASHLAR_OK, "decoding a token");
  return std::string(View(text));
}

std::string Decoder::Finish() {
  const UninstrumentedCall call;
  ashlar_bytes text{};
  Check(tok_decoder_finish(handle_, &text, nullptr) == ASHLAR_OK, "ending a decode");
  return std::string(View(text));
}

}  // namespace ashlar
