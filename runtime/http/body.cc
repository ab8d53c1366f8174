#include "http/body.h"

#include <algorithm>

namespace ashlar {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

BodyReader::BodyReader(const HttpHead& head, const HttpLimits& limits)
    : limits_(limits), chunked_(head.framing == BodyFraming::kChunked), left_(head.length) {
  phase_ = chunked_ ? Phase::kSize : (left_ > 0 ? Phase::kData : Phase::kDone);
}

BodyReader::State BodyReader::RefuseChunk(std::string found, std::string allowed) {
  refusal_ = {400, {"body", std::move(found), std::move(allowed), kSpeakHttp}};
  return State::kRefused;
}

BodyReader::State BodyReader::SizeByte(char c, size_t body_size) {
  if (c == '\r') {
    if (digits_ == 0) return RefuseChunk("a chunk without a size", "a size in hex digits");
    phase_ = Phase::kSizeFeed;
    return State::kMore;
  }
  int digit = HexDigit(c);
  // Eight digits reach past every limit; more could only be padding.
  if (digit < 0 || ++digits_ > 8) {
    return RefuseChunk("a chunk size of another kind", "one to eight hex digits, no extension");
  }
  left_ = left_ * 16 + digit;
  if (left_ + static_cast<int64_t>(body_size) > limits_.body_bytes) {
    refusal_ = {413, BodyTooLong(limits_)};
    return State::kRefused;
  }
  return State::kMore;
}

BodyReader::State BodyReader::Read(std::string_view& bytes, std::string& body) {
  if (refusal_.status != 0) return State::kRefused;
  while (phase_ != Phase::kDone && !bytes.empty()) {
    if (phase_ == Phase::kData) {
      size_t take = std::min<size_t>(bytes.size(), static_cast<size_t>(left_));
      body.append(bytes.substr(0, take));
      bytes.remove_prefix(take);
      left_ -= static_cast<int64_t>(take);
      if (left_ == 0) phase_ = chunked_ ? Phase::kDataReturn : Phase::kDone;
      continue;
    }
    char c = bytes.front();
    bytes.remove_prefix(1);
    switch (phase_) {
      case Phase::kSize:
        if (SizeByte(c, body.size()) == State::kRefused) return State::kRefused;
        break;
      case Phase::kSizeFeed:
        if (c != '\n')
          return RefuseChunk("a chunk size that does not end in CR LF", "CR LF after a chunk size");
        phase_ = left_ > 0 ? Phase::kData : Phase::kEndReturn;
        digits_ = 0;
        break;
      case Phase::kDataReturn:
        if (c != '\r')
          return RefuseChunk("a chunk longer than its size", "as many bytes as the size says");
        phase_ = Phase::kDataFeed;
        break;
      case Phase::kDataFeed:
        if (c != '\n')
          return RefuseChunk("a chunk that does not end in CR LF", "CR LF after a chunk");
        phase_ = Phase::kSize;
        break;
      case Phase::kEndReturn:
        if (c != '\r') return RefuseChunk("trailers", "nothing after the last chunk");
        phase_ = Phase::kEndFeed;
        break;
      case Phase::kEndFeed:
        if (c != '\n')
          return RefuseChunk("a last chunk that does not end in CR LF",
                             "CR LF after the last chunk");
        phase_ = Phase::kDone;
        break;
      case Phase::kData:
      case Phase::kDone:
        break;
    }
  }
  return phase_ == Phase::kDone ? State::kDone : State::kMore;
}

}  // namespace ashlar
