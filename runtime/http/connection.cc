#include "http/connection.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "http/body.h"

namespace ashlar {
namespace {

using std::chrono::seconds;

class Connection {
 public:
  Connection(HttpShared& shared, int fd)
      : shared_(shared), limits_(shared.options.limits), socket_(fd) {}

  ~Connection() {
    shared_.table.Remove(socket_.fd());
    if (linger_) shared_.lingerer.Close(socket_.Release());
  }

  void Serve() {
    bool first = true;
    while (AwaitRequest(first) && ServeOne()) first = false;
  }

 private:
  HttpClock::time_point HeadDeadline() const {
    bool spare = shared_.table.TakePlace(socket_.fd());
    return HttpClock::now() + seconds(spare ? limits_.head_seconds : limits_.reserved_head_seconds);
  }

  // Waits for the first bytes of the next request; later requests of a connection may take long.
  bool AwaitRequest(bool first) {
    if (first || !buffer_.empty()) return true;
    bool wait = shared_.table.BeginIdle(socket_.fd());
    auto deadline = HttpClock::now() + (wait ? seconds(limits_.idle_seconds) : seconds(0));
    Socket::Outcome outcome = socket_.Read(buffer_, deadline);
    shared_.table.EndIdle(socket_.fd());
    return outcome == Socket::Outcome::kOk;
  }

  // False when the connection ends with this request.
  bool ServeOne() {
    HeadParser parser(limits_);
    if (!ReadHead(parser)) return false;
    HttpHead& head = parser.head();
    buffer_.erase(0, parser.size());
    head.request.peer = socket_.PeerAddress();
    SocketResponder responder(socket_, Answer(head));
    const HttpRoute* route = Admit(head, responder);
    if (route == nullptr || !ReadBody(head, responder)) {
      linger_ = true;  // the body, if any, is still on its way
      return false;
    }
    Handle(*route, head.request, responder);
    if (responder.timed_out()) ++shared_.counters.timed_out;
    if (!responder.complete()) return false;
    linger_ = !responder.reusable();
    return responder.reusable();
  }

  SocketResponder::Options Answer(const HttpHead& head) const {
    SocketResponder::Options options;
    options.write_seconds = limits_.stuck_reader_seconds;
    options.without_body = head.request.method == "HEAD";
    options.http10 = head.http10;
    options.close = !head.keep_alive || shared_.announce_close;
    return options;
  }

  void SendError(SocketResponder& responder, int status, std::string_view reason,
                 HttpHeaders extra = {}) {
    extra.emplace_back("Content-Type", "application/json");
    responder.CloseAfter();
    responder.Send(status, extra, shared_.ErrorBody(status, reason));
  }

  void Refuse(const HttpRefusal& refusal) {
    ++shared_.counters.malformed;
    SocketResponder responder(socket_, {limits_.stuck_reader_seconds, false, false, true});
    SendError(responder, refusal.status, refusal.reason);
    linger_ = true;
  }

  bool ReadHead(HeadParser& parser) {
    auto deadline = HeadDeadline();
    while (true) {
      HeadParser::State state = parser.Parse(buffer_);
      if (state == HeadParser::State::kDone) return true;
      if (state == HeadParser::State::kRefused) {
        Refuse(parser.refusal());
        return false;
      }
      Socket::Outcome outcome = socket_.Read(buffer_, deadline);
      if (outcome == Socket::Outcome::kOk) continue;
      if (outcome == Socket::Outcome::kTimeout) {
        ++shared_.counters.timed_out;
        if (!buffer_.empty()) {
          SocketResponder responder(socket_, {limits_.stuck_reader_seconds, false, false, true});
          SendError(responder, 408, "the head took too long");
          linger_ = true;
        }
      } else if (!buffer_.empty()) {
        ++shared_.counters.malformed;
      }
      return false;
    }
  }

  // The route that may serve the request; null after a refusal was sent.
  const HttpRoute* Admit(const HttpHead& head, SocketResponder& responder) {
    const HttpRequest& request = head.request;
    int status = shared_.options.authorize ? shared_.options.authorize(request) : 0;
    if (status != 0) {
      HttpHeaders extra;
      if (status == 401) extra.emplace_back("WWW-Authenticate", "Bearer");
      SendError(responder, status, "no valid key", std::move(extra));
      return nullptr;
    }
    RouteTable::Match match = shared_.routes.Find(request.method, request.path);
    if (match.route == nullptr) {
      if (match.allow.empty()) {
        SendError(responder, 404, "no such path");
      } else {
        SendError(responder, 405, fmt::format("this path takes {}", match.allow),
                  {{"Allow", match.allow}});
      }
      return nullptr;
    }
    if (!shared_.table.TakePlace(socket_.fd())) {
      // The last places are for short answers only; each gives its place back at once.
      responder.CloseAfter();
      if (!match.route->always) {
        ++shared_.counters.refused;
        SendError(responder, 503, "all connections are in use", {{"Retry-After", "1"}});
        return nullptr;
      }
    }
    return match.route;
  }

  bool ReadBody(HttpHead& head, SocketResponder& responder) {
    BodyReader reader(head, limits_);
    std::string& body = head.request.body;
    auto start = HttpClock::now();
    if (head.expect_continue && head.framing != BodyFraming::kNone && buffer_.empty()) {
      socket_.Write("HTTP/1.1 100 Continue\r\n\r\n", start + seconds(limits_.head_seconds));
    }
    while (true) {
      std::string_view bytes = buffer_;
      BodyReader::State state = reader.Read(bytes, body);
      buffer_.erase(0, buffer_.size() - bytes.size());
      if (state == BodyReader::State::kDone) return true;
      if (state == BodyReader::State::kRefused) {
        ++shared_.counters.malformed;
        SendError(responder, reader.refusal().status, reader.refusal().reason);
        return false;
      }
      int64_t earned = 5 + static_cast<int64_t>(body.size()) / limits_.body_bytes_per_second;
      auto deadline = start + seconds(std::min<int64_t>(limits_.body_seconds, earned));
      Socket::Outcome outcome = socket_.Read(buffer_, deadline);
      if (outcome == Socket::Outcome::kOk) continue;
      if (outcome == Socket::Outcome::kTimeout) {
        ++shared_.counters.timed_out;
        SendError(responder, 408, "the body took too long");
      } else {
        ++shared_.counters.malformed;
      }
      return false;
    }
  }

  void Handle(const HttpRoute& route, const HttpRequest& request, SocketResponder& responder) {
    try {
      route.handler(request, responder);
    } catch (const std::exception& error) {
      // The text stays in our log: it may hold what the client must not see.
      LogError("http", "a handler threw: {}", error.what());
    }
    if (!responder.answered()) SendError(responder, 500, "internal error");
  }

  HttpShared& shared_;
  const HttpLimits& limits_;
  Socket socket_;
  std::string buffer_;  // received and not yet used
  bool linger_ = false;
};

}  // namespace

RouteTable::RouteTable(std::vector<HttpRoute> routes) : routes_(std::move(routes)) {
  for (const HttpRoute& route : routes_) by_path_[route.path].push_back(&route);
}

RouteTable::Match RouteTable::Find(const std::string& method, const std::string& path) const {
  auto rows = by_path_.find(path);
  if (rows == by_path_.end()) {
    size_t slash = path.rfind('/');
    if (slash + 1 < path.size()) rows = by_path_.find(path.substr(0, slash + 1) + "*");
  }
  if (rows == by_path_.end()) return {};
  Match match;
  for (const HttpRoute* route : rows->second) {
    if (route->method == method || (route->method == "GET" && method == "HEAD")) {
      return {route, ""};
    }
    match.allow += (match.allow.empty() ? "" : ", ") + route->method;
    if (route->method == "GET") match.allow += ", HEAD";
  }
  return match;
}

std::string HttpShared::ErrorBody(int status, std::string_view reason) const {
  if (options.error_body) return options.error_body(status, reason);
  return fmt::format("{{\"error\":\"{}\"}}", reason);
}

void RefuseConnection(HttpShared& shared, int fd) {
  ++shared.counters.refused;
  Socket socket(fd);
  SocketResponder responder(socket, {0, false, false, true});
  responder.Send(503, {{"Content-Type", "application/json"}, {"Retry-After", "1"}},
                 shared.ErrorBody(503, "all connections are in use"));
  shared.lingerer.Close(socket.Release());
}

void ServeConnection(HttpShared& shared, int fd) {
  Connection connection(shared, fd);
  connection.Serve();
}

}  // namespace ashlar
