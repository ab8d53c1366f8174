// Serves one connection, request after request, under every limit. Runs on one worker thread.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "http/connection_table.h"
#include "http/head.h"
#include "http/lingerer.h"
#include "http/responder.h"
#include "http/server.h"
#include "http/socket.h"
#include "http/tls.h"

namespace ashlar {

// Routes by exact path, then by exact method.
class RouteTable {
 public:
  explicit RouteTable(std::vector<HttpRoute> routes);
  struct Match {
    const HttpRoute* route = nullptr;
    std::string allow;  // methods of the path, when only the method has no row
  };
  Match Find(const std::string& method, const std::string& path) const;

 private:
  std::vector<HttpRoute> routes_;
  std::unordered_map<std::string, std::vector<const HttpRoute*>> by_path_;
};

// What all connections of a server share; outlives them.
struct HttpShared {
  HttpServer::Options options;
  std::unique_ptr<TlsCertificate> certificate;  // null without TLS
  RouteTable routes;
  ConnectionTable table;
  HttpCounters counters;
  Lingerer lingerer;
  std::atomic<bool> announce_close{false};

  HttpShared(HttpServer::Options given, std::vector<HttpRoute> rows)
      : options(std::move(given)), routes(std::move(rows)), table(options.limits.connections) {}
  // Sends the answer to what no handler answers, and tells who counts.
  void Answer(HttpResponder& responder, const HttpRequest& request, int status,
              const Problem& problem, HttpHeaders extra = {}) const;
};

// Answers 503 in one quick write, or with TLS just closes; for a connection that no thread can
// serve.
void RefuseConnection(HttpShared& shared, int fd);

// `fd` is in the table; takes it out and closes it.
void ServeConnection(HttpShared& shared, int fd);

}  // namespace ashlar
