#include "http/head.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace ashlar {
namespace {

bool IsTokenChar(char c) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) return true;
  return std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsTokenChar);
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string_view TrimSpace(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Any byte but controls; a tab is allowed.
bool IsFieldValue(std::string_view value) {
  return std::all_of(value.begin(), value.end(), [](char c) {
    unsigned char byte = static_cast<unsigned char>(c);
    return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
  });
}

bool IsHost(std::string_view value) {
  return !value.empty() && std::all_of(value.begin(), value.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-._~%:[]").find(c) != std::string_view::npos;
  });
}

// A second one of these would let two readers see two different requests.
constexpr std::array<std::string_view, 7> kOnce = {
    "authorization", "content-encoding", "content-length", "content-type", "expect",
    "host",          "transfer-encoding"};

bool ListHas(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    size_t comma = list.find(',');
    if (Lower(TrimSpace(list.substr(0, comma))) == word) return true;
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return false;
}

}  // namespace

Problem BodyTooLong(const HttpLimits& limits) {
  return {"body", "it is too long", fmt::format("at most {} bytes", limits.body_bytes),
          "send a shorter one, or raise server.bodyBytes"};
}

std::string_view HttpRequest::Header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return "";
}

HeadParser::State HeadParser::Refuse(int status, Problem problem) {
  refusal_ = {status, std::move(problem)};
  return State::kRefused;
}

HeadParser::State HeadParser::Parse(std::string_view bytes) {
  if (refusal_.status != 0) return State::kRefused;
  while (true) {
    const int64_t limit = has_request_line_ ? limits_.header_bytes : limits_.request_line_bytes;
    const int over = has_request_line_ ? 431 : 414;
    size_t feed = bytes.find('\n', std::max(next_, scanned_));
    size_t end = feed == std::string_view::npos ? bytes.size() : feed;
    // A complete line ends in CR, which the limit does not count.
    if (static_cast<int64_t>(end - next_) > limit + 1) {
      return Refuse(over, {has_request_line_ ? "header" : "request line", "it is too long",
                           fmt::format("at most {} bytes", limit), "shorten it"});
    }
    if (static_cast<int64_t>(end + (feed == std::string_view::npos ? 0 : 1)) > limits_.head_bytes) {
      return Refuse(431,
                    {"head", "it is too long", fmt::format("at most {} bytes", limits_.head_bytes),
                     "send fewer or shorter headers"});
    }
    if (feed == std::string_view::npos) {
      scanned_ = bytes.size();
      return State::kMore;
    }
    std::string_view line = bytes.substr(next_, feed - next_);
    if (line.empty() || line.back() != '\r')
      return Refuse(400, {"head", "a line that does not end in CR LF", "lines that end in CR LF",
                          kSpeakHttp});
    line.remove_suffix(1);
    next_ = feed + 1;
    State state;
    if (!has_request_line_) {
      has_request_line_ = true;
      state = RequestLine(line);
    } else if (line.empty()) {
      return Finish();
    } else {
      state = HeaderLine(line);
    }
    if (state == State::kRefused) return state;
  }
}

HeadParser::State HeadParser::RequestLine(std::string_view line) {
  size_t first = line.find(' ');
  size_t second = first == std::string_view::npos ? first : line.find(' ', first + 1);
  if (second == std::string_view::npos || line.find(' ', second + 1) != std::string_view::npos) {
    return Refuse(400, {"request line", "not three words", "METHOD TARGET VERSION", kSpeakHttp});
  }
  std::string_view method = line.substr(0, first);
  std::string_view target = line.substr(first + 1, second - first - 1);
  std::string_view version = line.substr(second + 1);
  if (!IsToken(method) || method.size() > 32) {
    return Refuse(400,
                  {"request line", "a method that is no token", "GET, HEAD or POST", kSpeakHttp});
  }
  if (version == "HTTP/1.0") {
    head_.http10 = true;
    head_.keep_alive = false;
  } else if (version != "HTTP/1.1") {
    bool other = version.size() == 8 && version.starts_with("HTTP/");
    return Refuse(other ? 505 : 400, {"request line", "a version of another kind",
                                      "HTTP/1.1 or HTTP/1.0", "speak HTTP/1.1"});
  }
  if (target.empty() || target.front() != '/' ||
      !std::all_of(target.begin(), target.end(), [](char c) {
        return c > 0x20 && c < 0x7f && c != '#' && c != '"' && c != '<' && c != '>' && c != '\\';
      })) {
    return Refuse(400, {"request line", "a target of another kind",
                        "an absolute path in plain ASCII", "encode other characters as %XX"});
  }
  size_t question = target.find('?');
  head_.request.method = method;
  head_.request.path = target.substr(0, question);
  if (question != std::string_view::npos) head_.request.query = target.substr(question + 1);
  return State::kMore;
}

HeadParser::State HeadParser::HeaderLine(std::string_view line) {
  HttpHeaders& headers = head_.request.headers;
  if (static_cast<int>(headers.size()) >= limits_.headers) {
    return Refuse(431, {"head", "too many headers", fmt::format("at most {}", limits_.headers),
                        "send fewer"});
  }
  size_t colon = line.find(':');
  std::string_view name = line.substr(0, colon);
  // A name with an underscore reads like one with a hyphen to many a proxy.
  if (colon == std::string_view::npos || !IsToken(name) ||
      name.find('_') != std::string_view::npos) {
    return Refuse(400, {"header", "a name of another kind",
                        "letters, digits and hyphens before a colon", "rename it or leave it out"});
  }
  std::string_view value = TrimSpace(line.substr(colon + 1));
  std::string lower = Lower(name);
  if (!IsFieldValue(value)) {
    return Refuse(
        400, {"header " + lower, "a control character", "printable characters", "leave it out"});
  }
  bool once = std::find(kOnce.begin(), kOnce.end(), lower) != kOnce.end();
  if (once && std::any_of(headers.begin(), headers.end(),
                          [&](const auto& header) { return header.first == lower; })) {
    return Refuse(400, {"header " + lower, "it stands twice", "one of it", "send it once"});
  }
  headers.emplace_back(std::move(lower), value);
  return State::kMore;
}

HeadParser::State HeadParser::Finish() {
  bool has_host = false, has_length = false, chunked = false;
  for (const auto& [name, value] : head_.request.headers) {
    if (name == "host") {
      if (!IsHost(value)) {
        return Refuse(400, {"header host", "it names no host", "a name or address, and a port",
                            "send the host of the URL"});
      }
      has_host = true;
    } else if (name == "content-length") {
      bool digits =
          !value.empty() && value.size() <= 18 &&
          std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; });
      if (!digits) {
        return Refuse(400, {"header content-length", "no plain number", "decimal digits",
                            "send the number of bytes of the body"});
      }
      has_length = true;
      head_.framing = BodyFraming::kLength;
      head_.length = std::stoll(value);
    } else if (name == "transfer-encoding") {
      if (Lower(value) != "chunked") {
        return Refuse(400, {"header transfer-encoding", "an encoding of another kind", "chunked",
                            "send the body as it is"});
      }
      chunked = true;
    } else if (name == "trailer") {
      return Refuse(400, {"header trailer", "headers after the body", "headers before it only",
                          "leave it out"});
    } else if (name == "content-encoding") {
      if (Lower(value) != "identity") {
        return Refuse(415, {"header content-encoding", "a compressed body", "identity",
                            "send the body as it is"});
      }
    } else if (name == "expect") {
      if (Lower(value) != "100-continue") {
        return Refuse(417, {"header expect", "an expectation of another kind", "100-continue",
                            "leave it out"});
      }
      head_.expect_continue = !head_.http10;
    } else if (name == "connection") {
      if (ListHas(value, "close")) head_.keep_alive = false;
    }
  }
  if (!has_host && !head_.http10) {
    return Refuse(400, {"header host", "it is absent", "one in every HTTP/1.1 request", "add it"});
  }
  if (chunked && (has_length || head_.http10)) {
    return Refuse(400, {"header transfer-encoding", "it stands beside a length or in HTTP/1.0",
                        "one framing: a content-length, or chunks", kSpeakHttp});
  }
  if (chunked) head_.framing = BodyFraming::kChunked;
  if (head_.length > limits_.body_bytes) {
    return Refuse(413, BodyTooLong(limits_));
  }
  return State::kDone;
}

}  // namespace ashlar
