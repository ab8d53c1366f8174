#include "serve/answer.h"

#include <gtest/gtest.h>

#include "serve/openai_response.h"
#include "support/http_tiny_text.h"

namespace ashlar {
namespace {

class AnswerTest : public testing::Test {
 protected:
  // One token an event, the last with the finish.
  std::vector<AnswerPiece> Run(const ApiRequest& request, const std::vector<int32_t>& ids,
                               FinishReason reason = FinishReason::kStop) {
    AnswerAssembler assembler(*tokenizer_, request);
    std::vector<AnswerPiece> pieces;
    for (int32_t id : ids) {
      Event event;
      event.ids = {id};
      event.logprobs = {{id, -1, {}}};
      pieces.push_back(assembler.Push(event));
    }
    Event last;
    last.finish = reason;
    pieces.push_back(assembler.Push(last));
    tokens_ = assembler.tokens();
    ended_ = assembler.ended();
    return pieces;
  }
  static std::string TextOf(const std::vector<AnswerPiece>& pieces) {
    std::string text;
    for (const AnswerPiece& piece : pieces) text += piece.text;
    return text;
  }
  std::string BytesOf(const std::vector<AnswerPiece>& pieces) {
    std::string bytes;
    for (const AnswerPiece& piece : pieces) {
      for (const TokenLogprob& token : piece.logprobs) bytes += tokenizer_->TokenBytes(token.id);
    }
    return bytes;
  }

  std::unique_ptr<Tokenizer> tokenizer_ = test::TinyTokenizer({"to", "mor", "row", " ok"});
  int tokens_ = 0;
  bool ended_ = false;
};

TEST_F(AnswerTest, LogprobsGoOutWithTheTextThatTheyMake) {
  auto pieces = Run({}, test::ByteIds("a\xf0\x9f\xa6\x8a"));
  EXPECT_EQ(pieces[0].text, "a");
  EXPECT_EQ(pieces[0].logprobs.size(), 1u);
  for (int i = 1; i < 4; ++i) {
    EXPECT_EQ(pieces[i].text, "");
    EXPECT_TRUE(pieces[i].logprobs.empty());
  }
  EXPECT_EQ(pieces[4].text, "\xf0\x9f\xa6\x8a");
  EXPECT_EQ(pieces[4].logprobs.size(), 4u);
}

TEST_F(AnswerTest, LogprobsAreHeldBackWithTheirText) {
  ApiRequest request;
  request.stops = {"morrow"};
  auto pieces = Run(request, {256, 257, 259});
  EXPECT_EQ(pieces[1].text, "");
  EXPECT_TRUE(pieces[1].logprobs.empty());
  EXPECT_EQ(pieces[2].text, "mor ok");
  EXPECT_EQ(pieces[2].logprobs.size(), 2u);
}

TEST_F(AnswerTest, TokensBehindAStopStringAreNoPartOfTheAnswer) {
  ApiRequest request;
  request.stops = {"morrow"};
  auto pieces = Run(request, {256, 257, 258, 259});
  EXPECT_EQ(TextOf(pieces), "to");
  EXPECT_EQ(BytesOf(pieces), "to");
  EXPECT_EQ(tokens_, 3);
  EXPECT_TRUE(ended_);
}

TEST_F(AnswerTest, StopStringsCountOnlyAfterMinTokens) {
  ApiRequest request;
  request.stops = {"to"};
  request.min_tokens = 2;
  EXPECT_EQ(TextOf(Run(request, {256, 257, 256, 258})), "tomor");
}

TEST_F(AnswerTest, ACharacterCutByTheEndBecomesOneReplacement) {
  auto pieces = Run({}, test::ByteIds("a\xe4\xb8"), FinishReason::kLength);
  EXPECT_EQ(TextOf(pieces), "a\xef\xbf\xbd");
  EXPECT_EQ(BytesOf(pieces), "a\xe4\xb8");  // logprobs keep the raw bytes
}

TEST_F(AnswerTest, PiecesOfOneEventAndOfManyJoinAlike) {
  ApiRequest request;
  request.stops = {"k t"};
  std::vector<int32_t> ids = {256, 257, 259, 32, 256, 258};
  std::string many = TextOf(Run(request, ids));
  AnswerAssembler assembler(*tokenizer_, request);
  Event event;
  event.ids = ids;
  event.finish = FinishReason::kStop;
  EXPECT_EQ(assembler.Push(event).text, many);
  EXPECT_EQ(many, "tomor o");
}

TEST(Utf8, TellsValidFromInvalid) {
  for (const char* good :
       {"", "a", "\xc3\xa4", "\xe4\xb8\xad", "\xf0\x9f\xa6\x8a", "\xed\x9f\xbf"}) {
    EXPECT_TRUE(IsValidUtf8(good)) << good;
  }
  for (const char* bad : {"\x80", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80",
                          "\xf4\x90\x80\x80", "\xf0\x9f\xa6", "\xff", "a\xe4\xb8"}) {
    EXPECT_FALSE(IsValidUtf8(bad)) << bad;
  }
  EXPECT_EQ(PrintableToken("\xe4\xb8"), "bytes:\\xe4\\xb8");
  EXPECT_EQ(WireLogprob(-std::numeric_limits<float>::infinity()), -9999.0);
  EXPECT_EQ(WireLogprob(std::numeric_limits<float>::quiet_NaN()), -9999.0);
}

}  // namespace
}  // namespace ashlar
