// Strict reading of a request head: what is doubtful is refused, never guessed. Pure; reads bytes,
// touches no socket.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "http/server.h"

namespace ashlar {

// Why a request is refused before a handler sees it: the status to send, and the mistake.
struct HttpRefusal {
  int status = 0;
  Problem problem;
};

// What to do about framing that no usual client sends.
inline constexpr const char* kSpeakHttp = "use a client that speaks strict HTTP/1.1";

// The mistake of a body over its limit, however it is framed.
Problem BodyTooLong(const HttpLimits& limits);

enum class BodyFraming { kNone, kLength, kChunked };

struct HttpHead {
  HttpRequest request;  // without body and peer
  BodyFraming framing = BodyFraming::kNone;
  int64_t length = 0;  // of the body, with kLength
  bool http10 = false;
  bool keep_alive = true;
  bool expect_continue = false;
};

class HeadParser {
 public:
  explicit HeadParser(const HttpLimits& limits) : limits_(limits) {}

  enum class State { kMore, kDone, kRefused };

  // `bytes` is everything received since the head began; only what is new is looked at. Lines end
  // in CR LF and nothing else.
  State Parse(std::string_view bytes);

  size_t size() const { return next_; }  // of the head, once kDone
  HttpHead& head() { return head_; }
  const HttpRefusal& refusal() const { return refusal_; }

 private:
  State Refuse(int status, Problem problem);
  State RequestLine(std::string_view line);
  State HeaderLine(std::string_view line);
  State Finish();

  const HttpLimits& limits_;
  HttpHead head_;
  HttpRefusal refusal_;
  size_t next_ = 0;     // start of the line being read
  size_t scanned_ = 0;  // no line feed before here, from next_ on
  bool has_request_line_ = false;
};

}  // namespace ashlar
