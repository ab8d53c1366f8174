// The hooks over HTTP: each answer is a function of the body, the last snapshot and the time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "http/server.h"
#include "operator-hooks/hook_metrics.h"
#include "operator-hooks/settings.h"
#include "operator-hooks/snapshots.h"
#include "operator-hooks/verdict.h"

namespace ashlar::hooks {

struct HookAnswer {
  int status = 200;
  std::string body;                 // JSON; for a refusal {"error": ..., "problems": [...]}
  int64_t retry_after_seconds = 0;  // with 429
};

// For any thread.
class HookService {
 public:
  // `clock` yields seconds since 1970. The references outlive the service.
  HookService(const Settings& settings, SnapshotStore& snapshots, HookMetrics& metrics,
              std::function<int64_t()> clock)
      : settings_(settings),
        snapshots_(snapshots),
        metrics_(metrics),
        clock_(std::move(clock)),
        memo_(metrics) {}

  // Body of a sync or a finalize request. A body that is no such request is refused with 400; a
  // model whose pods were not asked yet with 429.
  HookAnswer Sync(std::string_view body);
  // Which other objects a model depends on: the nodes that its pods may run on.
  HookAnswer Customize(std::string_view body);
  // Body of an AdmissionReview: whether a resource may be stored.
  HookAnswer Validate(std::string_view body);
  // The page of metrics.
  std::string Metrics() const { return metrics_.Text(snapshots_.Count(clock_())); }

 private:
  const Settings& settings_;
  SnapshotStore& snapshots_;
  HookMetrics& metrics_;
  std::function<int64_t()> clock_;
  VerdictMemo memo_;
};

// POST /sync, /finalize and /customize, which are counted in `metrics`; GET /healthz and /metrics.
std::vector<HttpRoute> HookRoutes(HookService& service, HookMetrics& metrics);

// POST /validate, for the server that speaks TLS with the API server.
std::vector<HttpRoute> AdmissionRoutes(HookService& service, HookMetrics& metrics);

// Limits of a server that only the cluster's controller calls, with all nodes in a body.
HttpLimits HookLimits();

// The body of a refusal before a route was found.
std::string HookError(int status, std::string_view reason);

}  // namespace ashlar::hooks
