// The handlers of /v1/*: refuse while nothing can be generated, then carry out what was asked.
#pragma once

#include <atomic>
#include <ctime>
#include <memory>
#include <optional>

#include "http/server.h"
#include "serve/checks.h"
#include "serve/errors.h"
#include "serve/metrics.h"
#include "serve/serving.h"

namespace ashlar {

// Handlers run on HTTP threads; main's thread calls the rest.
class OpenAiRoutes {
 public:
  // Both outlive the routes.
  OpenAiRoutes(const Readiness& readiness, Metrics& metrics)
      : readiness_(readiness), metrics_(metrics) {}

  // As rows of the server's table; they refer to this object.
  std::vector<HttpRoute> Rows();

  // From now on requests are served, as long as `readiness` says so. Once.
  void Attach(Serving serving);
  // What is served, or null before that. Any thread.
  const Serving* serving() const { return serving_.load(); }

  // Requests being carried out. Any thread.
  int64_t inflight() const { return inflight_; }
  // Those end soon with one error event each, and no new one begins.
  void End() { ending_ = true; }

 private:
  void AnswerModels(const HttpRequest& request, HttpResponder& responder);
  void AnswerGeneration(ApiRoute route, const HttpRequest& request, HttpResponder& responder);
  // Why nothing can be generated now.
  std::optional<ApiError> Unavailable() const;

  const Readiness& readiness_;
  Metrics& metrics_;
  std::atomic<bool> ending_{false};
  std::atomic<int64_t> inflight_{0};
  std::time_t attached_at_ = 0;  // written before serving_, which publishes it
  std::atomic<const Serving*> serving_{nullptr};
  std::unique_ptr<const Serving> serving_owner_;
};

}  // namespace ashlar
