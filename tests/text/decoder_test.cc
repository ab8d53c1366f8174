#include <gtest/gtest.h>

#include <random>

#include "text/goldens.h"

namespace ashlar {
namespace {

constexpr const char* kReplacement = "\xef\xbf\xbd";

// What each push gave, then what Finish gave.
std::vector<std::string> Stream(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  Decoder decoder(tokenizer, true);
  std::vector<std::string> chunks;
  for (int32_t id : ids) chunks.push_back(decoder.Push(id));
  chunks.push_back(decoder.Finish());
  return chunks;
}

std::vector<int32_t> ByteTokens(const Tokenizer& tokenizer, std::string_view bytes) {
  std::vector<int32_t> ids;
  for (unsigned char byte : bytes) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", byte);
    ids.push_back(*tokenizer.TokenId(name));
  }
  return ids;
}

TEST(Decoder, GivesAnEmojiOfFourByteTokensInOneChunk) {
  auto tokenizer = Make(SentencePieceVocabulary());
  EXPECT_EQ(Stream(*tokenizer, ByteTokens(*tokenizer, "\U0001F98A")),
            (std::vector<std::string>{"", "", "", "\U0001F98A", ""}));
}

TEST(Decoder, GivesACharacterCutTwoPlusOneInOneChunk) {
  // A character of three bytes whose first two are one token.
  OwnedVocabulary vocabulary = ByteLevelVocabulary("gpt-2");
  auto tokenizer = Make(vocabulary);
  std::vector<int32_t> ids = *tokenizer->Encode("\u6f22", false);
  ASSERT_GE(ids.size(), 2u);
  std::vector<std::string> chunks = Stream(*tokenizer, ids);
  for (size_t i = 0; i + 1 < ids.size(); ++i) EXPECT_EQ(chunks[i], "");
  EXPECT_EQ(chunks[ids.size() - 1], "\u6f22");
}

TEST(Decoder, ACutCharacterBecomesOneReplacementAtTheEnd) {
  auto tokenizer = Make(SentencePieceVocabulary());
  EXPECT_EQ(Stream(*tokenizer, ByteTokens(*tokenizer, "a\xe6\xbc")),
            (std::vector<std::string>{"a", "", "", kReplacement}));
}

TEST(Decoder, AWrongByteDoesNotHoldBackWhatFollows) {
  auto tokenizer = Make(SentencePieceVocabulary());
  EXPECT_EQ(Stream(*tokenizer, ByteTokens(*tokenizer, "\xe6x\xff")),
            (std::vector<std::string>{"", std::string(kReplacement) + "x", kReplacement, ""}));
}

TEST(Decoder, SkipsSpecialTokensWithinACharacter) {
  auto tokenizer = Make(SentencePieceVocabulary());
  std::vector<int32_t> ids = ByteTokens(*tokenizer, "\u00e9");
  ids.insert(ids.begin() + 1, 2);
  EXPECT_EQ(Stream(*tokenizer, ids), (std::vector<std::string>{"", "", "\u00e9", ""}));
}

TEST(Decoder, KeepsTheSpaceInFrontOfAContinuation) {
  auto tokenizer = Make(SentencePieceVocabulary());
  Decoder decoder(*tokenizer, true);
  EXPECT_EQ(decoder.Push(*tokenizer->TokenId("\u2581the")), " the");
}

TEST(Decoder, OutlivesItsTokenizer) {
  auto tokenizer = Make(SentencePieceVocabulary());
  const int32_t the = *tokenizer->TokenId("\u2581the");
  Decoder decoder(*tokenizer, true);
  tokenizer.reset();
  EXPECT_EQ(decoder.Push(the), " the");
}

TEST(Decoder, ChunksTogetherEqualTheWholeDecodeForRandomTokens) {
  OwnedVocabulary vocabulary = SentencePieceVocabulary();
  vocabulary.fields.add_space_prefix = false;
  std::vector<std::unique_ptr<Tokenizer>> tokenizers;
  tokenizers.push_back(Make(vocabulary));
  tokenizers.push_back(Make(ByteLevelVocabulary("gpt-2")));
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 2000; ++round) {
    const Tokenizer& tokenizer = *tokenizers[round % 2];
    std::vector<int32_t> ids(random() % 12);
    for (int32_t& id : ids) id = static_cast<int32_t>(random() % tokenizer.vocabulary_size());
    std::string text;
    for (const std::string& chunk : Stream(tokenizer, ids)) text += chunk;
    ASSERT_EQ(text, *tokenizer.Decode(ids, true));
  }
}

}  // namespace
}  // namespace ashlar
