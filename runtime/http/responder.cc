#include "http/responder.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>

namespace ashlar {
namespace {

struct StatusRow {
  int status;
  std::string_view text;
};
constexpr std::array<StatusRow, 22> kStatuses = {{
    {200, "OK"},
    {204, "No Content"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {422, "Unprocessable Content"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
}};

bool Printable(std::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

}  // namespace

std::string_view StatusText(int status) {
  for (const StatusRow& row : kStatuses) {
    if (row.status == status) return row.text;
  }
  return "";
}

std::string SocketResponder::Head(int status, const HttpHeaders& headers) const {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\nDate: {:%a, %d %b %Y %H:%M:%S} GMT\r\n", status,
                                 StatusText(status), fmt::gmtime(std::time(nullptr)));
  for (const auto& [name, value] : headers) {
    // A line break in a value would start a header, or a whole answer, of somebody else's making.
    if (Printable(name) && Printable(value)) head += fmt::format("{}: {}\r\n", name, value);
  }
  if (options_.close || options_.http10) head += "Connection: close\r\n";
  return head;
}

void SocketResponder::Put(std::string_view bytes) {
  if (!alive_) return;
  auto outcome = socket_.Write(bytes, HttpClock::now() + HttpSpan(options_.write_seconds));
  if (outcome == Socket::Outcome::kOk) return;
  alive_ = false;
  timed_out_ = outcome == Socket::Outcome::kTimeout;
}

void SocketResponder::Send(int status, const HttpHeaders& headers, std::string_view body) {
  Check(state_ == State::kNothing, "one answer to one request");
  state_ = State::kEnded;
  std::string answer = Head(status, headers);
  answer += fmt::format("Content-Length: {}\r\n\r\n", body.size());
  if (!options_.without_body) answer += body;
  Put(answer);
}

void SocketResponder::Begin(int status, const HttpHeaders& headers) {
  Check(state_ == State::kNothing, "one answer to one request");
  state_ = State::kStreaming;
  if (options_.http10) options_.close = true;
  std::string head = Head(status, headers);
  if (!options_.http10) head += "Transfer-Encoding: chunked\r\n";
  head += "\r\n";
  Put(head);
}

bool SocketResponder::Write(std::string_view chunk) {
  Check(state_ == State::kStreaming, "Write stands between Begin and End");
  if (chunk.empty() || options_.without_body) return alive_;
  if (options_.http10) {
    Put(chunk);
  } else {
    Put(fmt::format("{:x}\r\n{}\r\n", chunk.size(), chunk));
  }
  return alive_;
}

void SocketResponder::End() {
  Check(state_ == State::kStreaming, "End follows Begin");
  state_ = State::kEnded;
  if (!options_.http10 && !options_.without_body) Put("0\r\n\r\n");
}

bool SocketResponder::ClientGone() { return !alive_ || socket_.PeerClosed(); }

}  // namespace ashlar
