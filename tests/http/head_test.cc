#include "http/head.h"

#include <gtest/gtest.h>

namespace ashlar {
namespace {

using namespace std::string_literals;

struct Outcome {
  int status;  // 0: accepted, -1: more is needed
  Problem problem;
  HttpHead head;
};

Outcome Parse(const std::string& text, const HttpLimits& limits = {}) {
  HeadParser parser(limits);
  switch (parser.Parse(text)) {
    case HeadParser::State::kMore:
      return {-1, {}, {}};
    case HeadParser::State::kRefused:
      return {parser.refusal().status, parser.refusal().problem, {}};
    case HeadParser::State::kDone:
      return {0, {}, parser.head()};
  }
  return {};
}

std::string Get(const std::string& headers) {
  return "GET / HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n";
}

TEST(HeadParser, SplitsTargetAndLowersNames) {
  Outcome outcome = Parse("POST /v1/x?a=b&c HTTP/1.1\r\nHost: a:80\r\nX-Thing:  Value \r\n\r\n");
  ASSERT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.head.request.method, "POST");
  EXPECT_EQ(outcome.head.request.path, "/v1/x");
  EXPECT_EQ(outcome.head.request.query, "a=b&c");
  EXPECT_EQ(outcome.head.request.Header("x-thing"), "Value");
  EXPECT_EQ(outcome.head.request.Header("absent"), "");
  EXPECT_TRUE(outcome.head.keep_alive);
}

TEST(HeadParser, GivesTheSameAnswerHoweverTheBytesArrive) {
  std::string text = "GET /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
  HttpLimits limits;
  HeadParser parser(limits);
  for (size_t size = 0; size < text.size() - 3; ++size) {
    ASSERT_EQ(parser.Parse(std::string_view(text).substr(0, size)), HeadParser::State::kMore);
  }
  ASSERT_EQ(parser.Parse(text), HeadParser::State::kDone);
  EXPECT_EQ(parser.size(), text.size() - 3);
  EXPECT_EQ(parser.head().length, 3);
}

struct Case {
  std::string text;
  int status;
  std::string reason;
};

TEST(HeadParser, RefusesWhatTwoReadersMightReadDifferently) {
  const std::vector<Case> cases = {
      {"GET / HTTP/1.1\nHost: a\n\n", 400, "head: a line that does not end in CR LF"},
      {"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", 400, "head: a line that does not end in CR LF"},
      {"GET / HTTP/1.1\r\nX: a\rb\r\nHost: a\r\n\r\n", 400, "header x: a control character"},
      {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400, "request line: not three words"},
      {"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400, "request line: not three words"},
      {"GET /\r\nHost: a\r\n\r\n", 400, "request line: not three words"},
      {"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400, "request line: not three words"},
      {"G(T / HTTP/1.1\r\nHost: a\r\n\r\n", 400, "request line: a method that is no token"},
      {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505, "request line: a version of another kind"},
      {"PRI * HTTP/2.0\r\n\r\n", 505, "request line: a version of another kind"},
      {"GET / http/1.1\r\nHost: a\r\n\r\n", 400, "request line: a version of another kind"},
      {"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400, "request line: a target of another kind"},
      {"GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400, "request line: a target of another kind"},
      {"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", 400, "request line: a target of another kind"},
      {"GET /\xc3\xa4 HTTP/1.1\r\nHost: a\r\n\r\n", 400, "request line: a target of another kind"},
      {"GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n"s, 400, "request line: a target of another kind"},
      {Get(" folded: b\r\n"), 400, "header: a name of another kind"},
      {Get("X-A: b\r\n folded\r\n"), 400, "header: a name of another kind"},
      {Get("X A: b\r\n"), 400, "header: a name of another kind"},
      {Get("X-A : b\r\n"), 400, "header: a name of another kind"},
      {Get("Content_Length: 1\r\n"), 400, "header: a name of another kind"},
      {Get(": b\r\n"), 400, "header: a name of another kind"},
      {Get("nocolon\r\n"), 400, "header: a name of another kind"},
      {Get("X: a\0b\r\n"s), 400, "header x: a control character"},
      {Get("X: a\x7f\r\n"), 400, "header x: a control character"},
      {Get("Host: b\r\n"), 400, "header host: it stands twice"},
      {Get("Content-Length: 1\r\nContent-Length: 1\r\n"), 400,
       "header content-length: it stands twice"},
      {Get("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400,
       "header transfer-encoding: it stands twice"},
      {Get("Authorization: a\r\nAuthorization: b\r\n"), 400,
       "header authorization: it stands twice"},
      {"GET / HTTP/1.1\r\n\r\n", 400, "header host: it is absent"},
      {"GET / HTTP/1.1\r\nHost:\r\n\r\n", 400, "header host: it names no host"},
      {"GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", 400, "header host: it names no host"},
      {Get("Content-Length: -1\r\n"), 400, "header content-length: no plain number"},
      {Get("Content-Length: +1\r\n"), 400, "header content-length: no plain number"},
      {Get("Content-Length: 0x1\r\n"), 400, "header content-length: no plain number"},
      {Get("Content-Length: 1, 1\r\n"), 400, "header content-length: no plain number"},
      {Get("Content-Length: 99999999999999999999\r\n"), 400,
       "header content-length: no plain number"},
      {Get("Content-Length:\r\n"), 400, "header content-length: no plain number"},
      {Get("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), 400,
       "header transfer-encoding: it stands beside a length"},
      {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400,
       "header transfer-encoding: it stands beside a length"},
      {Get("Transfer-Encoding: gzip, chunked\r\n"), 400,
       "header transfer-encoding: an encoding of another kind"},
      {Get("Transfer-Encoding: xchunked\r\n"), 400,
       "header transfer-encoding: an encoding of another kind"},
      {Get("Trailer: X\r\n"), 400, "header trailer: headers after the body"},
      {Get("Content-Encoding: gzip\r\n"), 415, "header content-encoding: a compressed body"},
      {Get("Expect: miracles\r\n"), 417, "header expect: an expectation of another kind"},
  };
  for (const Case& c : cases) {
    Outcome outcome = Parse(c.text);
    EXPECT_EQ(outcome.status, c.status) << c.text;
    EXPECT_TRUE(outcome.problem.Text().starts_with(c.reason)) << c.text << outcome.problem.Text();
    EXPECT_FALSE(outcome.problem.allowed.empty() || outcome.problem.next.empty()) << c.text;
  }
}

TEST(HeadParser, ReadsPlainVariantsOfFraming) {
  EXPECT_EQ(Parse(Get("Content-Length: 0\r\n")).head.framing, BodyFraming::kLength);
  EXPECT_EQ(Parse(Get("Transfer-Encoding: Chunked\r\n")).head.framing, BodyFraming::kChunked);
  EXPECT_EQ(Parse(Get("Content-Encoding: identity\r\n")).status, 0);
  EXPECT_TRUE(Parse(Get("Expect: 100-continue\r\n")).head.expect_continue);
  EXPECT_FALSE(Parse(Get("Connection: TE, Close\r\n")).head.keep_alive);
  EXPECT_FALSE(Parse("GET / HTTP/1.0\r\n\r\n").head.keep_alive);
}

TEST(HeadLimits, RequestLineAtLimitAndOneOver) {
  HttpLimits limits;
  auto line = [&](int64_t bytes) {
    std::string around = "GET / HTTP/1.1";
    return "GET /" + std::string(static_cast<size_t>(bytes) - around.size(), 'a') +
           " HTTP/1.1\r\nHost: a\r\n\r\n";
  };
  EXPECT_EQ(Parse(line(limits.request_line_bytes)).status, 0);
  EXPECT_EQ(Parse(line(limits.request_line_bytes + 1)).status, 414);
  EXPECT_EQ(Parse(line(limits.request_line_bytes * 1000)).status, 414);
  // Refused while it grows, without waiting for its end.
  EXPECT_EQ(Parse("GET /" + std::string(5000, 'a')).status, 414);
}

TEST(HeadLimits, HeaderAtLimitAndOneOver) {
  HttpLimits limits;
  auto header = [](int64_t bytes) {
    return Get("X: " + std::string(static_cast<size_t>(bytes) - 3, 'a') + "\r\n");
  };
  EXPECT_EQ(Parse(header(limits.header_bytes)).status, 0);
  EXPECT_EQ(Parse(header(limits.header_bytes + 1)).status, 431);
  EXPECT_EQ(Parse("GET / HTTP/1.1\r\nX: " + std::string(9000, 'a')).status, 431);
}

TEST(HeadLimits, HeaderCountAtLimitAndOneOver) {
  HttpLimits limits;
  auto count = [](int headers) {  // one of them is Host
    std::string text;
    for (int i = 1; i < headers; ++i) text += "X: a\r\n";
    return Get(text);
  };
  EXPECT_EQ(Parse(count(limits.headers)).status, 0);
  EXPECT_EQ(Parse(count(limits.headers + 1)).status, 431);
}

TEST(HeadLimits, WholeHeadAtLimitAndOneOver) {
  HttpLimits limits;
  auto head = [](int64_t bytes) {
    std::string text;
    for (int i = 0; i < 4; ++i) text += "X: " + std::string(7000, 'a') + "\r\n";
    int64_t left = bytes - static_cast<int64_t>(Get(text + "Y: \r\n").size());
    return Get(text + "Y: " + std::string(static_cast<size_t>(left), 'a') + "\r\n");
  };
  ASSERT_EQ(static_cast<int64_t>(head(limits.head_bytes).size()), limits.head_bytes);
  EXPECT_EQ(Parse(head(limits.head_bytes)).status, 0);
  EXPECT_EQ(Parse(head(limits.head_bytes + 1)).status, 431);
}

TEST(HeadLimits, BodyLengthAtLimitAndOneOver) {
  HttpLimits limits;
  auto length = [](int64_t bytes) {
    return Get("Content-Length: " + std::to_string(bytes) + "\r\n");
  };
  EXPECT_EQ(Parse(length(limits.body_bytes)).status, 0);
  EXPECT_EQ(Parse(length(limits.body_bytes + 1)).status, 413);
}

}  // namespace
}  // namespace ashlar
