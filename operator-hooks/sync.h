// The heart of the hooks: what is observed of one model becomes what is wanted of it. Pure: no I/O,
// no clock, no chance; the same input gives the same bytes, in whatever order its objects came.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "operator-hooks/children.h"
#include "operator-hooks/condition.h"
#include "operator-hooks/inference_model.h"
#include "operator-hooks/nodes.h"
#include "operator-hooks/pod_status.h"
#include "operator-hooks/settings.h"
#include "operator-hooks/verdict.h"

namespace ashlar::hooks {

// What Metacontroller sends to sync and finalize.
struct Observed {
  InferenceModel model;
  Children children;
  std::vector<NodeKind> nodes;
  bool finalizing = false;
};

// `request` is the body of either hook.
Observed ReadObserved(JsonElement request, Problems& problems);

struct Reconciled {
  std::vector<std::string> children;  // JSON, the full set: what is not here is deleted
  std::string status;                 // JSON
  std::vector<Truth> truths;          // of its conditions, in the order of kConditionTypes
  int64_t resync_seconds = 0;
  bool finalized = false;  // only when finalizing: nothing is left that must end first

  std::string Body(bool finalizing) const;  // the hook's answer
};

// `now` in seconds since 1970; used only where a condition changes. `memo` may be null; it saves
// time and changes nothing.
Reconciled Reconcile(const Observed& observed, const Snapshot& snapshot, int64_t now,
                     const Settings& settings, VerdictMemo* memo);

}  // namespace ashlar::hooks
