#include "serve/server.h"

#include <chrono>
#include <thread>

#include "serve/errors.h"
#include "serve/request_log.h"
#include "serve/status.h"

namespace ashlar {
namespace {

using Clock = std::chrono::steady_clock;

void SendText(HttpResponder& responder, int status, std::string_view text) {
  responder.Send(status, {{"Content-Type", "text/plain; charset=utf-8"}}, text);
}

}  // namespace

ApiServer::ApiServer(Options options, Readiness& readiness)
    : options_(std::move(options)), readiness_(readiness) {}

Result<std::unique_ptr<ApiServer>> ApiServer::Start(Options options, Readiness& readiness) {
  std::unique_ptr<ApiServer> server(new ApiServer(std::move(options), readiness));
  HttpServer::Options http;
  http.host = server->options_.host;
  http.port = server->options_.port;
  http.limits = server->options_.limits;
  http.error_body = [](int status, std::string_view reason) {
    ErrorCode code = CodeOfHttpStatus(status);
    return DumpJson(ErrorJson({code, {"", std::string(reason), "", ""}}));
  };
  http.authorize = [keys = &server->options_.keys](const HttpRequest& request) {
    bool admitted = !ApiKeys::Guards(request.path) || keys->Admits(request.Header("authorization"));
    return admitted ? 0 : 401;
  };
  http.answered_here = [metrics = &server->metrics_](const HttpRequest& request, int status,
                                                     std::string_view reason) {
    metrics->CountRequest(ApiRoute::kUnrouted, status);
    LogRefusal(request, status, reason);
  };
  auto started = HttpServer::Start(std::move(http), server->Routes());
  if (!started) return started.problems();
  server->http_ = std::move(*started);
  server->counters_ = &server->http_->counters();
  return server;
}

ApiServer::~ApiServer() { openai_.End(); }

std::vector<HttpRoute> ApiServer::Routes() {
  HttpHandler ready = [this](const HttpRequest&, HttpResponder& responder) {
    AnswerReady(responder);
  };
  std::vector<HttpRoute> routes = {
      {"GET", "/livez",
       [this](const HttpRequest&, HttpResponder& responder) { AnswerLive(responder); }, true},
      {"GET", "/readyz", ready, true},
      {"GET", "/health", ready, true},
      {"GET", "/status",
       [this](const HttpRequest&, HttpResponder& responder) {
         NoteFault();
         responder.Send(200, {{"Content-Type", "application/json"}}, StatusJson());
       },
       true},
      {"GET", "/metrics",
       [this](const HttpRequest&, HttpResponder& responder) {
         NoteFault();
         responder.Send(200, {{"Content-Type", std::string(Metrics::kContentType)}}, MetricsPage());
       },
       true},
  };
  for (HttpRoute& row : openai_.Rows()) routes.push_back(std::move(row));
  return routes;
}

std::string ApiServer::MetricsPage() const {
  Metrics::Sources sources;
  sources.readiness = readiness_.snapshot();
  if (const Serving* serving = openai_.serving()) sources.engine = serving->generator.stats();
  sources.http = counters_.load();
  sources.inflight = openai_.inflight();
  return metrics_.Render(sources);
}

// A device that failed after Ready makes the server unready for good.
void ApiServer::NoteFault() {
  const Serving* serving = openai_.serving();
  if (serving == nullptr) return;
  std::string fault = serving->generator.stats().fault;
  if (fault.empty()) return;
  readiness_.FailWith(ReadyCheck::kEngine, {{"engine", fault, "", "restart this replica"}});
  if (readiness_.snapshot().phase == Phase::kReady) readiness_.SetPhase(Phase::kFailed);
  std::lock_guard lock(mutex_);
  if (!failed_at_) failed_at_ = Clock::now();
}

// Alive for a while after a fault, so that it can be looked at; then somebody may restart it.
void ApiServer::AnswerLive(HttpResponder& responder) {
  NoteFault();
  bool dead = false;
  {
    std::lock_guard lock(mutex_);
    const std::chrono::duration<double> grace(options_.fault_grace_seconds);
    dead = failed_at_ && Clock::now() - *failed_at_ >= grace;
  }
  if (dead) {
    SendText(responder, 503, "the device failed\n");
  } else {
    SendText(responder, 200, "ok\n");
  }
}

void ApiServer::AnswerReady(HttpResponder& responder) {
  NoteFault();
  Readiness::Snapshot snapshot = readiness_.snapshot();
  bool ready = snapshot.ready && openai_.serving() != nullptr;
  if (ready) {
    SendText(responder, 200, "ok\n");
    return;
  }
  std::string blocker = snapshot.blocker.empty() ? "engine" : snapshot.blocker;
  std::string text = blocker + "\n";
  for (const CheckInfo& info : kChecks) {
    if (info.name != blocker) continue;
    for (const Problem& problem : snapshot.problems[static_cast<size_t>(info.check)]) {
      text += problem.Text() + "\n";
    }
  }
  SendText(responder, 503, text);
}

void ApiServer::SetModel(const std::string& name, const std::string& digest) {
  metrics_.SetModel(name, digest);
  std::lock_guard lock(mutex_);
  model_name_ = name;
  digest_ = digest;
}

void ApiServer::SetPlan(const Plan& plan) {
  metrics_.SetPlan(plan);
  Json json = ToJson(plan);
  std::lock_guard lock(mutex_);
  plan_ = std::move(json);
}

void ApiServer::SetSelfTest(std::vector<SelfTestResult> results) {
  metrics_.SetSelfTest(results);
  std::lock_guard lock(mutex_);
  self_test_ = std::move(results);
}

void ApiServer::SetStartupPhase(const std::string& phase, double seconds) {
  metrics_.SetStartupPhase(phase, seconds);
}

void ApiServer::Attach(Serving serving) { openai_.Attach(std::move(serving)); }

std::string ApiServer::StatusJson() const {
  StatusSources sources;
  sources.readiness = readiness_.snapshot();
  EngineStats stats;
  if (const Serving* serving = openai_.serving()) {
    stats = serving->generator.stats();
    sources.engine = &stats;
  }
  {
    std::lock_guard lock(mutex_);
    sources.model_name = model_name_;
    sources.digest = digest_;
    sources.plan = plan_;
    sources.self_test = self_test_;
  }
  return DumpJson(StatusDocument(sources));
}

void ApiServer::EndDrainNow() {
  std::lock_guard lock(mutex_);
  hurry_ = true;
  changed_.notify_all();
}

// Looks every few milliseconds: a drain happens once in a process's life.
bool ApiServer::WaitForIdle(double seconds) {
  auto until = Clock::now() + std::chrono::duration<double>(seconds);
  std::unique_lock lock(mutex_);
  while (openai_.inflight() > 0 && !hurry_ && Clock::now() < until) {
    changed_.wait_for(lock, std::chrono::milliseconds(5));
  }
  return openai_.inflight() == 0;
}

bool ApiServer::Drain(double lame_duck_seconds, double drain_seconds) {
  readiness_.SetPhase(Phase::kDraining);
  http_->AnnounceClose();
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::duration<double>(lame_duck_seconds),
                      [this] { return hurry_; });
  }
  http_->StopAccepting();
  bool clean = WaitForIdle(drain_seconds);
  openai_.End();
  if (!clean) {
    // Their threads look for that many times a second; a stuck reader gets no more than this.
    auto until = Clock::now() + std::chrono::seconds(5);
    while (openai_.inflight() > 0 && Clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  if (const Serving* serving = openai_.serving()) serving->generator.StopAccepting();
  return clean;
}

}  // namespace ashlar
