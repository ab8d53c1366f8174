// The API as a whole: opens its port before there is a model, says why it is not ready, serves once
// a model is attached, and drains.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "http/server.h"
#include "serve/api_keys.h"
#include "serve/checks.h"
#include "serve/metrics.h"
#include "serve/openai_routes.h"

namespace ashlar {

// Main's thread calls the functions; handlers run on HTTP threads.
class ApiServer {
 public:
  struct Options {
    std::string host = "0.0.0.0";
    int port = 8000;  // 0: any free one
    HttpLimits limits;
    ApiKeys keys;
    double fault_grace_seconds = 30;  // from a device fault until /livez fails too
  };

  // Opens the port. `readiness` outlives the server.
  static Result<std::unique_ptr<ApiServer>> Start(Options options, Readiness& readiness);
  // Ends what runs with one error event each, then closes.
  ~ApiServer();

  int port() const { return http_->port(); }

  // What /status and /metrics show, when it becomes known.
  void SetModel(const std::string& name, const std::string& digest);
  void SetPlan(const Plan& plan);
  void SetSelfTest(std::vector<SelfTestResult> results);
  void SetStartupPhase(const std::string& phase, double seconds);

  // From now on requests are served, as long as `readiness` says ready. Once; what it refers to
  // outlives the server.
  void Attach(Serving serving);

  // Phase draining, unready, still accepting for `lame_duck_seconds` with Connection: close; then
  // refuses connections and waits up to `drain_seconds` for running requests; then ends those with
  // one error event each. True when none had to be ended.
  bool Drain(double lame_duck_seconds, double drain_seconds);
  // Cuts the waits of Drain short; from any thread.
  void EndDrainNow();

  // The document of /status, compact.
  std::string StatusJson() const;

 private:
  ApiServer(Options options, Readiness& readiness);
  std::vector<HttpRoute> Routes();

  void AnswerLive(HttpResponder& responder);
  void AnswerReady(HttpResponder& responder);
  std::string MetricsPage() const;
  void NoteFault();
  bool WaitForIdle(double seconds);

  Options options_;
  Readiness& readiness_;
  Metrics metrics_;
  OpenAiRoutes openai_{readiness_, metrics_};
  std::atomic<const HttpCounters*> counters_{nullptr};  // null until the port is open

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::string model_name_, digest_;
  Json plan_;
  std::vector<SelfTestResult> self_test_;
  std::optional<std::chrono::steady_clock::time_point> failed_at_;  // first seen
  bool hurry_ = false;

  std::unique_ptr<HttpServer> http_;  // last: its handlers use all the rest
};

}  // namespace ashlar
