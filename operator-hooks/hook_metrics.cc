#include "operator-hooks/hook_metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <array>

namespace ashlar::hooks {
namespace {

constexpr std::array<const char*, 4> kHooks = {"sync", "finalize", "customize", "validate"};
constexpr std::array<int, 3> kStatuses = {200, 400, 429};
constexpr std::array<const char*, 4> kPollResults = {"answered", "unreachable", "unreadable",
                                                     "unresolved"};

prometheus::Histogram::BucketBoundaries SecondBounds() {
  return {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5};
}

}  // namespace

struct HookMetrics::Series {
  using Counter = prometheus::Counter;
  using Gauge = prometheus::Gauge;

  Series() {
    prometheus::BuildGauge()
        .Name("ashlar_hook_build_info")
        .Help("The hooks' binary; always 1.")
        .Register(registry)
        .Add({{"version", ASHLAR_VERSION}, {"compiler", __VERSION__}})
        .Set(1);
    auto& request_family = prometheus::BuildCounter()
                               .Name("ashlar_hook_requests_total")
                               .Help("Answers by hook and HTTP status.")
                               .Register(registry);
    auto& duration_family = prometheus::BuildHistogram()
                                .Name("ashlar_hook_request_duration_seconds")
                                .Help("Time from a whole request to its answer.")
                                .Register(registry);
    for (size_t hook = 0; hook < kHooks.size(); ++hook) {
      durations[hook] = &duration_family.Add({{"hook", kHooks[hook]}}, SecondBounds());
      for (size_t i = 0; i < kStatuses.size(); ++i) {
        requests[hook][i] =
            &request_family.Add({{"hook", kHooks[hook]}, {"code", std::to_string(kStatuses[i])}});
      }
    }
    auto& verdict_family = prometheus::BuildCounter()
                               .Name("ashlar_hook_plan_cache_lookups_total")
                               .Help("Models judged: from the planner's memory, or planned anew.")
                               .Register(registry);
    hits = &verdict_family.Add({{"result", "hit"}});
    misses = &verdict_family.Add({{"result", "miss"}});
    auto& poll_family = prometheus::BuildCounter()
                            .Name("ashlar_hook_pod_polls_total")
                            .Help(
                                "Pods asked for their /status by what came of it; unresolved "
                                "counts models whose pods could not be looked up.")
                            .Register(registry);
    for (size_t i = 0; i < kPollResults.size(); ++i)
      polls[i] = &poll_family.Add({{"result", kPollResults[i]}});
    last_poll = &prometheus::BuildGauge()
                     .Name("ashlar_hook_last_poll_timestamp_seconds")
                     .Help("When every model's pods had last been asked.")
                     .Register(registry)
                     .Add({});
    auto& model_family = prometheus::BuildGauge()
                             .Name("ashlar_hook_models")
                             .Help(
                                 "Models synced here in the last three minutes, by condition "
                                 "and its status.")
                             .Register(registry);
    for (size_t type = 0; type < kConditionTypes.size(); ++type) {
      for (Truth truth : kTruths) {
        models[type][static_cast<size_t>(truth)] =
            &model_family.Add({{"condition", std::string(kConditionTypes[type])},
                               {"status", std::string(Name(truth))}});
      }
    }
  }

  prometheus::Registry registry;  // owns every series
  std::array<std::array<Counter*, kStatuses.size()>, kHooks.size()> requests;
  std::array<prometheus::Histogram*, kHooks.size()> durations;
  Counter *hits, *misses;
  std::array<Counter*, kPollResults.size()> polls;
  Gauge* last_poll;
  std::array<std::array<Gauge*, kTruths.size()>, kConditionTypes.size()> models;
};

HookMetrics::HookMetrics() : series_(std::make_unique<Series>()) {}
HookMetrics::~HookMetrics() = default;

void HookMetrics::CountRequest(Hook hook, int status, double seconds) {
  const size_t row = static_cast<size_t>(hook);
  for (size_t i = 0; i < kStatuses.size(); ++i) {
    if (kStatuses[i] == status) series_->requests[row][i]->Increment();
  }
  series_->durations[row]->Observe(seconds);
}

void HookMetrics::CountVerdict(bool remembered) {
  (remembered ? series_->hits : series_->misses)->Increment();
}

void HookMetrics::CountPoll(PollResult result) {
  series_->polls[static_cast<size_t>(result)]->Increment();
}

void HookMetrics::SetPolled(int64_t unix_seconds) {
  series_->last_poll->Set(static_cast<double>(unix_seconds));
}

std::string HookMetrics::Text(const SnapshotStore::Counts& models) const {
  for (size_t type = 0; type < models.size(); ++type) {
    for (size_t truth = 0; truth < models[type].size(); ++truth)
      series_->models[type][truth]->Set(static_cast<double>(models[type][truth]));
  }
  return prometheus::TextSerializer().Serialize(series_->registry.Collect());
}

}  // namespace ashlar::hooks
