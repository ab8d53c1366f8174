// A connection from anybody: head and body must read the same however the bytes arrive, and what is
// accepted must be unambiguous.
#include <algorithm>
#include <string>

#include "base/check.h"
#include "http/body.h"
#include "http/head.h"

namespace ashlar {
namespace {

HttpLimits Limits() {
  HttpLimits limits;
  limits.request_line_bytes = 200;
  limits.header_bytes = 100;
  limits.head_bytes = 600;
  limits.headers = 8;
  limits.body_bytes = 500;
  return limits;
}

struct Outcome {
  int status = -1;  // -1: more is needed
  size_t size = 0;
  std::string body, rest;
};

Outcome Read(std::string_view input, size_t piece, const HttpLimits& limits) {
  HeadParser parser(limits);
  Outcome outcome;
  size_t given = 0;
  HeadParser::State state = HeadParser::State::kMore;
  while (state == HeadParser::State::kMore && given < input.size()) {
    given = std::min(input.size(), given + piece);
    state = parser.Parse(input.substr(0, given));
  }
  if (state == HeadParser::State::kMore) return outcome;
  if (state == HeadParser::State::kRefused) {
    Check(parser.refusal().status >= 400 && !parser.refusal().problem.found.empty(),
          "a refusal says why");
    outcome.status = parser.refusal().status;
    return outcome;
  }
  HttpHead& head = parser.head();
  outcome.size = parser.size();
  Check(static_cast<int64_t>(parser.size()) <= limits.head_bytes, "the head is within its limit");
  Check(head.request.path.starts_with("/"), "a path is absolute");
  int lengths = 0, hosts = 0;
  for (const auto& [name, value] : head.request.headers) {
    lengths += name == "content-length" || name == "transfer-encoding" ? 1 : 0;
    hosts += name == "host" ? 1 : 0;
    Check(name.find('_') == std::string::npos, "no underscore in a name");
    Check(std::none_of(value.begin(), value.end(),
                       [](char c) { return c == '\r' || c == '\n' || c == '\0'; }),
          "no line break in a value");
  }
  Check(lengths <= 1 && hosts <= 1, "one framing, one host");
  BodyReader reader(head, limits);
  BodyReader::State body = BodyReader::State::kMore;
  std::string_view nothing;
  body = reader.Read(nothing, outcome.body);
  std::string_view left = input.substr(parser.size());
  while (body == BodyReader::State::kMore && !left.empty()) {
    std::string_view next = left.substr(0, piece);
    size_t size = next.size();
    body = reader.Read(next, outcome.body);
    left.remove_prefix(size - next.size());
  }
  Check(static_cast<int64_t>(outcome.body.size()) <= limits.body_bytes,
        "the body is within limits");
  outcome.status = body == BodyReader::State::kDone      ? 0
                   : body == BodyReader::State::kRefused ? reader.refusal().status
                                                         : -2;
  if (body == BodyReader::State::kDone) outcome.rest = left;
  return outcome;
}

}  // namespace
}  // namespace ashlar

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ashlar;
  std::string_view input(reinterpret_cast<const char*>(data), size);
  const HttpLimits limits = Limits();
  Outcome whole = Read(input, input.size() + 1, limits);
  for (size_t piece : {1, 7}) {
    Outcome pieces = Read(input, piece, limits);
    Check(pieces.status == whole.status, "the same verdict however the bytes arrive");
    Check(pieces.body == whole.body || whole.status > 0, "the same body however the bytes arrive");
    Check(pieces.rest == whole.rest, "the next request begins at the same byte");
  }
  return 0;
}
