// The bytes after the head, by exactly one framing: a length or chunks. Pure.
#pragma once

#include <string>
#include <string_view>

#include "http/head.h"

namespace ashlar {

class BodyReader {
 public:
  BodyReader(const HttpHead& head, const HttpLimits& limits);

  enum class State { kMore, kDone, kRefused };

  // Takes bytes off the front of `bytes` and appends what belongs to the body. Chunk extensions and
  // trailers are refused, and so is a body over the limit, before its bytes are kept.
  State Read(std::string_view& bytes, std::string& body);

  const HttpRefusal& refusal() const { return refusal_; }

 private:
  enum class Phase { kSize, kSizeFeed, kData, kDataReturn, kDataFeed, kEndReturn, kEndFeed, kDone };

  State RefuseChunk(std::string found, std::string allowed);
  State SizeByte(char c, size_t body_size);

  const HttpLimits& limits_;
  bool chunked_;
  Phase phase_;
  int64_t left_ = 0;  // bytes of the body or chunk still to come
  int digits_ = 0;    // of the chunk size
  HttpRefusal refusal_;
};

}  // namespace ashlar
