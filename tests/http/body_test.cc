#include "http/body.h"

#include <gtest/gtest.h>

namespace ashlar {
namespace {

struct Outcome {
  BodyReader::State state;
  std::string body, rest;
  int status = 0;
};

Outcome Read(BodyFraming framing, int64_t length, const std::string& text, size_t piece,
             const HttpLimits& limits = {}) {
  HttpHead head;
  head.framing = framing;
  head.length = length;
  BodyReader reader(head, limits);
  Outcome outcome;
  std::string buffer;
  std::string_view nothing;
  outcome.state = reader.Read(nothing, outcome.body);
  size_t at = 0;
  while (outcome.state == BodyReader::State::kMore && at < text.size()) {
    buffer += text.substr(at, piece);
    at += piece;
    std::string_view bytes = buffer;
    outcome.state = reader.Read(bytes, outcome.body);
    buffer.erase(0, buffer.size() - bytes.size());
  }
  outcome.rest = buffer + (at < text.size() ? text.substr(at) : "");
  outcome.status = reader.refusal().status;
  return outcome;
}

Outcome Chunks(const std::string& text, const HttpLimits& limits = {}) {
  return Read(BodyFraming::kChunked, 0, text, 1000, limits);
}

TEST(BodyReader, TakesExactlyTheLengthAndLeavesTheNextRequest) {
  for (size_t piece : {1, 2, 100}) {
    Outcome outcome = Read(BodyFraming::kLength, 5, "helloGET /", piece);
    EXPECT_EQ(outcome.state, BodyReader::State::kDone);
    EXPECT_EQ(outcome.body, "hello");
    EXPECT_EQ(outcome.rest, "GET /");
  }
}

TEST(BodyReader, JoinsChunksHoweverTheyArrive) {
  for (size_t piece : {1, 2, 3, 100}) {
    Outcome outcome =
        Read(BodyFraming::kChunked, 0, "3\r\nabc\r\n0A\r\n0123456789\r\n0\r\n\r\nGET /", piece);
    EXPECT_EQ(outcome.state, BodyReader::State::kDone);
    EXPECT_EQ(outcome.body, "abc0123456789");
    EXPECT_EQ(outcome.rest, "GET /");
  }
}

TEST(BodyReader, NoBodyIsDoneAtOnce) {
  EXPECT_EQ(Read(BodyFraming::kNone, 0, "", 1).state, BodyReader::State::kDone);
  EXPECT_EQ(Read(BodyFraming::kLength, 0, "", 1).state, BodyReader::State::kDone);
}

TEST(BodyReader, RefusesDoubtfulChunks) {
  const std::string texts[] = {
      "3\nabc\r\n0\r\n\r\n",            // bare line feed after the size
      "3\r\nabcd\r\n0\r\n\r\n",         // longer than its size
      "3\r\nabc\n0\r\n\r\n",            // bare line feed after the data
      "3;name=value\r\nabc\r\n",        // extension
      " 3\r\nabc\r\n",                  // space
      "0x3\r\nabc\r\n",                 // prefix
      "-3\r\nabc\r\n",                  // sign
      "\r\nabc\r\n",                    // no size
      "000000003\r\nabc\r\n",           // padded past eight digits
      "3\r\nabc\r\n0\r\nX: y\r\n\r\n",  // trailer
      "3\r\nabc\r\n0\r\n\rX",           // last chunk without its line feed
  };
  for (const std::string& text : texts) {
    Outcome outcome = Chunks(text);
    EXPECT_EQ(outcome.state, BodyReader::State::kRefused) << text;
    EXPECT_EQ(outcome.status, 400) << text;
  }
}

TEST(BodyLimits, ChunkedBodyAtLimitAndOneOver) {
  HttpLimits limits;
  limits.body_bytes = 20;
  EXPECT_EQ(Chunks("A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", limits).body.size(), 20u);
  EXPECT_EQ(Chunks("A\r\n0123456789\r\nb\r\n0123456789", limits).status, 413);
  EXPECT_EQ(Chunks("FFFFFFFF\r\n", limits).status, 413);
}

TEST(BodyLimits, AForgedChunkSizeReservesNothing) {
  HttpLimits limits;
  limits.body_bytes = int64_t{1} << 40;
  Outcome outcome = Chunks("7FFFFFFF\r\nabc", limits);
  EXPECT_EQ(outcome.state, BodyReader::State::kMore);
  EXPECT_EQ(outcome.body, "abc");
  EXPECT_LT(outcome.body.capacity(), 4096u);
}

}  // namespace
}  // namespace ashlar
