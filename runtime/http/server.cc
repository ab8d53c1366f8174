#include "http/server.h"

#include "http/acceptor.h"
#include "http/connection.h"
#include "http/worker_pool.h"

namespace ashlar {

// Members are destroyed last to first: the acceptor stops before the workers, and they before what
// they use.
struct HttpServer::Impl {
  HttpShared shared;
  WorkerPool workers;
  std::unique_ptr<Acceptor> acceptor;

  Impl(Options options, std::vector<HttpRoute> routes)
      : shared(std::move(options), std::move(routes)),
        workers(shared.options.limits.connections + shared.options.limits.reserved_connections) {}

  // On the acceptor's thread, so it never waits.
  void Take(int fd) {
    ++shared.counters.accepted;
    if (shared.table.full()) shared.table.EvictLongestIdle();
    shared.table.Add(fd);
    ++shared.counters.open;
    std::function<void()> task = [this, fd] {
      ServeConnection(shared, fd);
      --shared.counters.open;
    };
    if (workers.Run(task)) return;
    --shared.counters.open;
    shared.table.Remove(fd);
    RefuseConnection(shared, fd);
  }
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() { StopAccepting(); }

Result<std::unique_ptr<HttpServer>> HttpServer::Start(Options options,
                                                      std::vector<HttpRoute> routes) {
  std::string host = options.host;
  int port = options.port;
  std::unique_ptr<TlsCertificate> certificate;
  if (!options.certificate_file.empty()) {
    auto loaded = TlsCertificate::Load(options.certificate_file, options.key_file);
    if (!loaded) return loaded.problems();
    certificate = *std::move(loaded);
  }
  auto impl = std::make_unique<Impl>(std::move(options), std::move(routes));
  impl->shared.certificate = std::move(certificate);
  auto acceptor = Acceptor::Start(host, port, [raw = impl.get()](int fd) { raw->Take(fd); });
  if (!acceptor) return acceptor.problems();
  impl->acceptor = std::move(*acceptor);
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

int HttpServer::port() const { return impl_->acceptor->port(); }
const HttpCounters& HttpServer::counters() const { return impl_->shared.counters; }

void HttpServer::AnnounceClose() { impl_->shared.announce_close = true; }

void HttpServer::StopAccepting() {
  AnnounceClose();
  impl_->acceptor->Stop();
  impl_->shared.table.CloseIdle();
}

}  // namespace ashlar
