// What /metrics says: a page made from the plan, the engine's last Stats and our own counts, afresh
// for each scrape, so that a series cannot outlive what it counts. Any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/self_test.h"
#include "http/server.h"
#include "plan/plan.h"
#include "serve/checks.h"
#include "serve/generation.h"
#include "serve/metric_histogram.h"

namespace ashlar {

// kUnrouted: refused before a handler saw it.
enum class ApiRoute { kCompletions, kChat, kModels, kUnrouted };
inline constexpr size_t kApiRoutes = 4;
std::string_view Name(ApiRoute route);

class Metrics {
 public:
  Metrics();

  // Once each, when known.
  void SetModel(std::string name, std::string digest);
  void SetPlan(const Plan& plan);
  void SetSelfTest(std::vector<SelfTestResult> results);
  void SetStartupPhase(std::string phase, double seconds);

  void CountRequest(ApiRoute route, int status);
  void Observe(ApiRoute route, const GenerationReport& report, double seconds);

  // What the page is made of beside the above.
  struct Sources {
    Readiness::Snapshot readiness;
    EngineStats engine;  // zero before there is one
    const HttpCounters* http = nullptr;
    int64_t inflight = 0;
  };
  // Prometheus text format.
  std::string Render(const Sources& sources) const;

  static constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";

 private:
  struct Identity {
    std::string model_name, model_digest;
    std::shared_ptr<const Plan> plan;
    std::vector<SelfTestResult> self_test;
    std::vector<std::pair<std::string, double>> phases;
  };

  mutable std::mutex mutex_;
  Identity identity_;
  // By route and status class: 2xx, 4xx, 499, 5xx.
  std::array<std::array<std::atomic<int64_t>, 4>, kApiRoutes> requests_{};
  MetricHistogram completion_seconds_, chat_seconds_, first_token_, token_gap_, prompt_tokens_,
      generated_tokens_;
};

}  // namespace ashlar
