// Streaming decode against the model that it stands for: the bytes of all tokens, decoded at once.
#include "text/text.h"

namespace ashlar {
namespace {

void AppendUtf8(uint32_t character, std::string& out) {
  if (character < 0x80) {
    out += static_cast<char>(character);
  } else {
    out += static_cast<char>(0xC0 | character >> 6);
    out += static_cast<char>(0x80 | (character & 0x3F));
  }
}

// The character of GPT-2's alphabet that stands for `byte`: all below U+0800.
std::string Letter(int byte) {
  auto printable = [](int b) {
    return (b > 0x20 && b < 0x7F) || (b > 0xA0 && b < 0xAD) || b > 0xAD;
  };
  uint32_t character = static_cast<uint32_t>(byte);
  if (!printable(byte)) {
    character = 0x100;
    for (int b = 0; b < byte; ++b) character += !printable(b);
  }
  std::string letter;
  AppendUtf8(character, letter);
  return letter;
}

struct Vocabulary {
  std::vector<std::string> tokens, merges, bytes;
  std::unique_ptr<Tokenizer> tokenizer;

  Vocabulary() {
    for (int byte = 0; byte < 256; ++byte) {
      tokens.push_back(Letter(byte));
      bytes.push_back(std::string(1, static_cast<char>(byte)));
    }
    // Tokens that end within a character, begin within one, and both.
    for (auto [left, right] : {std::pair{0xE6, 0xBC},
                               {0xF0, 0x9F},
                               {0x9F, 0xA6},
                               {'a', 0xC3},
                               {0xA9, 'b'},
                               {0xA6, 0xF0},
                               {0xED, 0xA0}}) {
      merges.push_back(Letter(left) + " " + Letter(right));
      tokens.push_back(Letter(left) + Letter(right));
      bytes.push_back({static_cast<char>(left), static_cast<char>(right)});
    }
    GgufVocabulary vocabulary;
    vocabulary.model = "gpt2";
    vocabulary.pre = "gpt-2";
    vocabulary.tokens = tokens;
    vocabulary.merges = merges;
    auto made = Tokenizer::FromGguf(vocabulary);
    Check(made.ok(), made.ok() ? "" : Text(made.problems()));
    tokenizer = *std::move(made);
  }
};

// Bytes of `text` from `at` that form a character or, when they form none, its longest beginning.
size_t Length(const std::string& text, size_t at, bool* whole) {
  auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : 0u; };
  const unsigned first = byte(at);
  *whole = first < 0x80;
  if (first < 0x80) return 1;
  const size_t want = first >= 0xC2 && first < 0xE0   ? 2
                      : first >= 0xE0 && first < 0xF0 ? 3
                      : first >= 0xF0 && first < 0xF5 ? 4
                                                      : 1;
  for (size_t i = 1; i < want; ++i) {
    unsigned low = 0x80, high = 0xBF;
    if (i == 1 && first == 0xE0) low = 0xA0;
    if (i == 1 && first == 0xED) high = 0x9F;
    if (i == 1 && first == 0xF0) low = 0x90;
    if (i == 1 && first == 0xF4) high = 0x8F;
    if (byte(at + i) < low || byte(at + i) > high) return i;
  }
  *whole = want > 1;
  return want;
}

std::string Lossy(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    bool whole = false;
    const size_t length = Length(text, at, &whole);
    out += whole ? text.substr(at, length) : "\xef\xbf\xbd";
    at += length;
  }
  return out;
}

}  // namespace
}  // namespace ashlar

// Each two bytes name a token.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ashlar;
  static const Vocabulary vocabulary;
  Decoder decoder(*vocabulary.tokenizer, true);
  std::string streamed, raw;
  std::vector<int32_t> ids;
  for (size_t i = 0; i + 1 < size; i += 2) {
    // One past the vocabulary, too: it adds nothing.
    const size_t id = (data[i] | data[i + 1] << 8) % (vocabulary.bytes.size() + 1);
    ids.push_back(static_cast<int32_t>(id));
    const std::string chunk = decoder.Push(ids.back());
    Check(Lossy(chunk) == chunk, "each chunk is whole UTF-8");
    streamed += chunk;
    if (id < vocabulary.bytes.size()) raw += vocabulary.bytes[id];
  }
  streamed += decoder.Finish();
  Check(streamed == Lossy(raw), "streamed text is the decoded bytes");
  Check(*vocabulary.tokenizer->Decode(ids, true) == streamed, "whole text is the streamed text");
  return 0;
}
