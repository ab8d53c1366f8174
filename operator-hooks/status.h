// The status of the custom resource: what its children and pods show, judged condition by
// condition.
#pragma once

#include <string>
#include <vector>

#include "operator-hooks/children.h"
#include "operator-hooks/condition.h"
#include "operator-hooks/desired.h"
#include "operator-hooks/inference_model.h"
#include "operator-hooks/nodes.h"
#include "operator-hooks/pod_status.h"
#include "operator-hooks/rollout.h"
#include "operator-hooks/verdict.h"

namespace ashlar::hooks {

// Everything that the status is made of.
struct Facts {
  const InferenceModel& model;
  const Verdict& verdict;
  const Children& children;
  const std::vector<NodeKind>& nodes;
  const std::vector<PodStatus>& pods;  // sorted by address
  const Desired* desired = nullptr;    // null: nothing was ever accepted
  std::string pod_template;            // of `desired`
  Hold hold;
  std::vector<std::string> missing_kinds;  // features that the cluster cannot carry
  bool downloading = false;
  std::string download_failure;
};

// As kConditionTypes lists them. False is what failed, unknown what is not decided yet. Ready
// stands behind those that it needs and copies the first failed one, or else the first undecided
// one.
std::vector<Condition> MakeConditions(const Facts& facts);

// The whole status as JSON, with these conditions. `now` in seconds since 1970.
std::string MakeStatus(const Facts& facts, std::vector<Condition> conditions, int64_t now);

// Whether nothing is going on and the pods that were last asked are those that are wanted, so that
// it is soon enough to look again in a minute.
bool AtRest(const Facts& facts);

}  // namespace ashlar::hooks
