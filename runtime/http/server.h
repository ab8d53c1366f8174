// The guarded HTTP/1.1 server: limits, an exact routing table, streaming. Knows no route. One
// thread serves one connection.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/problem.h"
#include "base/result.h"

namespace ashlar {

struct HttpLimits {
  int64_t request_line_bytes = 4096, header_bytes = 8192, head_bytes = 32768;
  int headers = 64;
  int64_t body_bytes = 8 << 20;
  // Each is absolute, counted from the first moment of its phase: a byte now and then buys no time.
  double head_seconds = 10, body_seconds = 30, idle_seconds = 75, stuck_reader_seconds = 60;
  int64_t body_bytes_per_second = 1024;  // slower on average, after five seconds, is timed out
  int connections = 256;                 // served at once; more get 503 with Retry-After
  int reserved_connections = 8;          // beside these, for routes marked `always`
  double reserved_head_seconds = 2;      // head time while only reserved connections are left
};

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method, path, query;
  HttpHeaders headers;  // names in lower case
  std::string body;
  std::string peer;                                      // address of the socket, never of a header
  std::string_view Header(std::string_view name) const;  // "" when absent
};

// The answer to one request, used by the handler's thread only. Either Send once, or Begin,
// Write..., End.
class HttpResponder {
 public:
  virtual ~HttpResponder() = default;
  virtual void Send(int status, const HttpHeaders& headers, std::string_view body) = 0;
  virtual void Begin(int status, const HttpHeaders& headers) = 0;
  // False once the client has left or reads too slowly; nothing is sent after that.
  virtual bool Write(std::string_view chunk) = 0;
  virtual void End() = 0;
  // Whether the peer closed its side, if only for sending; cheap, asks the socket.
  virtual bool ClientGone() = 0;
};

using HttpHandler = std::function<void(const HttpRequest&, HttpResponder&)>;

struct HttpRoute {
  std::string method;
  std::string path;  // exact, or "/a/*" for any one last part; HEAD is answered by the GET row
                     // without a body
  HttpHandler handler;
  bool always = false;  // served from the reserved connections too
};

// Counters for metrics; each only grows, except `open`.
struct HttpCounters {
  std::atomic<int64_t> open{0}, accepted{0}, refused{0}, timed_out{0}, malformed{0};
};

class HttpServer {
 public:
  struct Options {
    std::string host = "0.0.0.0";
    int port = 8000;  // 0: any free one
    HttpLimits limits;
    // PEM files. With them the port speaks TLS (1.2 or later) only, and files that are replaced
    // serve the connections that come after. "": no TLS.
    std::string certificate_file, key_file;
    // Writes the body, application/json, of what the server answers by itself: a path or method
    // without a row, a refusal before the handler, a handler that threw. `reason` is one line in
    // four parts.
    std::function<std::string(int status, std::string_view reason)> error_body;
    // Called once for each such answer, just before it is sent, on the thread that sends it; the
    // request as far as it was read. Keys may be among its headers.
    std::function<void(const HttpRequest&, int status, std::string_view reason)> answered_here;
    // Called first on every request, before its body is read; a status other than 0 is sent with
    // error_body instead of the handler's answer.
    std::function<int(const HttpRequest&)> authorize;
  };

  // Binds and starts accepting. A port in use, or a certificate that cannot be used, is a Problem.
  static Result<std::unique_ptr<HttpServer>> Start(Options options, std::vector<HttpRoute> routes);
  // Stops accepting, waits for handlers, closes.
  ~HttpServer();

  int port() const;
  const HttpCounters& counters() const;
  // From now on every answer says Connection: close; accepting goes on.
  void AnnounceClose();
  // Closes the listening socket and idle connections; requests being served go on to their end.
  void StopAccepting();

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ashlar
