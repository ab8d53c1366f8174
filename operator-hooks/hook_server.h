// The hooks over HTTP: each answer is a function of the body, the last snapshot and the time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "http/server.h"
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
  HookService(const Settings& settings, SnapshotStore& snapshots, std::function<int64_t()> clock)
      : settings_(settings), snapshots_(snapshots), clock_(std::move(clock)) {}

  // Body of a sync or a finalize request. A body that is no such request is refused with 400; a
  // model whose pods were not asked yet with 429.
  HookAnswer Sync(std::string_view body);
  // Which other objects a model depends on: the nodes that its pods may run on.
  HookAnswer Customize(std::string_view body);

 private:
  const Settings& settings_;
  SnapshotStore& snapshots_;
  std::function<int64_t()> clock_;
  VerdictMemo memo_;
};

// POST /sync, /finalize and /customize, GET /healthz.
std::vector<HttpRoute> HookRoutes(HookService& service);

// Limits of a server that only the cluster's controller calls, with all nodes in a body.
HttpLimits HookLimits();

// The body of a refusal before a route was found.
std::string HookError(int status, std::string_view reason);

}  // namespace ashlar::hooks
