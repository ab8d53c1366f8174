#include "http/connection.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/log.h"
#include "http/body.h"

namespace ashlar {
namespace {

Problem AllInUse(const HttpLimits& limits) {
  return {"connection", "all connections are in use", fmt::format("at most {}", limits.connections),
          "try again later, or raise server.connections"};
}

class Connection {
 public:
  Connection(HttpShared& shared, int fd)
      : shared_(shared), limits_(shared.options.limits), socket_(fd) {}

  ~Connection() {
    shared_.table.Remove(socket_.fd());
    if (linger_) shared_.lingerer.Close(socket_.Release());
  }

  void Serve() {
    if (shared_.certificate != nullptr && !StartTls()) return;
    bool first = true;
    while (AwaitRequest(first) && ServeOne()) first = false;
  }

 private:
  HttpClock::time_point HeadDeadline() const {
    bool spare = shared_.table.TakePlace(socket_.fd());
    return HttpClock::now() +
           HttpSpan(spare ? limits_.head_seconds : limits_.reserved_head_seconds);
  }

  bool StartTls() {
    Socket::Outcome outcome = socket_.StartTls(shared_.certificate->NewSession(), HeadDeadline());
    if (outcome == Socket::Outcome::kOk) return true;
    ++(outcome == Socket::Outcome::kTimeout ? shared_.counters.timed_out
                                            : shared_.counters.malformed);
    return false;
  }

  // Waits for the first bytes of the next request; later requests of a connection may take long.
  bool AwaitRequest(bool first) {
    if (first || !buffer_.empty()) return true;
    bool wait = shared_.table.BeginIdle(socket_.fd());
    auto deadline = HttpClock::now() + HttpSpan(wait ? limits_.idle_seconds : 0);
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

  void SendError(SocketResponder& responder, const HttpRequest& request, int status,
                 const Problem& problem, HttpHeaders extra = {}) {
    responder.CloseAfter();
    shared_.Answer(responder, request, status, problem, std::move(extra));
  }

  // Answers a head that is not whole or not right; what is left of it may still be on its way.
  void RefuseHead(HttpRequest& request, int status, const Problem& problem) {
    request.peer = socket_.PeerAddress();
    SocketResponder responder(socket_, {limits_.stuck_reader_seconds, false, false, true});
    SendError(responder, request, status, problem);
    linger_ = true;
  }

  static Problem TooSlow(std::string place, double seconds, std::string field) {
    return {std::move(place), "it took too long", fmt::format("at most {} seconds", seconds),
            "send it faster, or raise server." + field};
  }

  bool ReadHead(HeadParser& parser) {
    auto deadline = HeadDeadline();
    while (true) {
      HeadParser::State state = parser.Parse(buffer_);
      if (state == HeadParser::State::kDone) return true;
      if (state == HeadParser::State::kRefused) {
        ++shared_.counters.malformed;
        RefuseHead(parser.head().request, parser.refusal().status, parser.refusal().problem);
        return false;
      }
      Socket::Outcome outcome = socket_.Read(buffer_, deadline);
      if (outcome == Socket::Outcome::kOk) continue;
      if (outcome == Socket::Outcome::kTimeout) {
        ++shared_.counters.timed_out;
        if (!buffer_.empty()) {
          RefuseHead(parser.head().request, 408,
                     TooSlow("head", limits_.head_seconds, "headSeconds"));
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
      SendError(responder, request, status,
                {"header authorization", "no valid key", "Bearer and a key of this server",
                 "send a key of server.apiKeyFile"},
                std::move(extra));
      return nullptr;
    }
    RouteTable::Match match = shared_.routes.Find(request.method, request.path);
    if (match.route == nullptr) {
      if (match.allow.empty()) {
        SendError(
            responder, request, 404,
            {"path", "there is no such path", "the paths that docs/api.md lists", "check the URL"});
      } else {
        SendError(responder, request, 405,
                  {"method", "this path does not take it", match.allow, "use one of these"},
                  {{"Allow", match.allow}});
      }
      return nullptr;
    }
    if (!shared_.table.TakePlace(socket_.fd())) {
      // The last places are for short answers only; each gives its place back at once.
      responder.CloseAfter();
      if (!match.route->always) {
        ++shared_.counters.refused;
        SendError(responder, request, 503, AllInUse(limits_), {{"Retry-After", "1"}});
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
      socket_.Write("HTTP/1.1 100 Continue\r\n\r\n", start + HttpSpan(limits_.head_seconds));
    }
    while (true) {
      std::string_view bytes = buffer_;
      BodyReader::State state = reader.Read(bytes, body);
      buffer_.erase(0, buffer_.size() - bytes.size());
      if (state == BodyReader::State::kDone) return true;
      if (state == BodyReader::State::kRefused) {
        ++shared_.counters.malformed;
        SendError(responder, head.request, reader.refusal().status, reader.refusal().problem);
        return false;
      }
      double earned =
          5 + static_cast<double>(body.size()) / static_cast<double>(limits_.body_bytes_per_second);
      auto deadline = start + HttpSpan(std::min(limits_.body_seconds, earned));
      Socket::Outcome outcome = socket_.Read(buffer_, deadline);
      if (outcome == Socket::Outcome::kOk) continue;
      if (outcome == Socket::Outcome::kTimeout) {
        ++shared_.counters.timed_out;
        SendError(responder, head.request, 408,
                  TooSlow("body", limits_.body_seconds, "bodySeconds"));
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
    if (!responder.answered()) {
      SendError(responder, request, 500,
                {"server", "internal error", "an answer", "report this with the server's log"});
    }
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

void HttpShared::Answer(HttpResponder& responder, const HttpRequest& request, int status,
                        const Problem& problem, HttpHeaders extra) const {
  std::string reason = problem.Text();
  if (options.answered_here) options.answered_here(request, status, reason);
  extra.emplace_back("Content-Type", "application/json");
  responder.Send(
      status, extra,
      options.error_body ? options.error_body(status, reason) : DumpJson({{"error", reason}}));
}

void RefuseConnection(HttpShared& shared, int fd) {
  ++shared.counters.refused;
  Socket socket(fd);
  if (shared.certificate != nullptr) return;
  HttpRequest unread;
  unread.peer = socket.PeerAddress();
  SocketResponder responder(socket, {0, false, false, true});
  shared.Answer(responder, unread, 503, AllInUse(shared.options.limits), {{"Retry-After", "1"}});
  shared.lingerer.Close(socket.Release());
}

void ServeConnection(HttpShared& shared, int fd) {
  Connection connection(shared, fd);
  connection.Serve();
}

}  // namespace ashlar
