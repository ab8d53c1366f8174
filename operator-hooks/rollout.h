// Where a rollout stands, and whether it must stop: new pods that plan otherwise than those before
// them are slower, larger or wrong until somebody says they may.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "operator-hooks/children.h"
#include "operator-hooks/inference_model.h"
#include "operator-hooks/pod_status.h"

namespace ashlar::hooks {

// Reason of the conditions of a held rollout.
inline constexpr std::string_view kPlanChanged = "PlanChanged";

struct Hold {
  bool held = false;
  std::string message;  // which group changed, from what to what
};

// A rollout of another template than the one on record is held when a pod of it shows another
// backend, block size or layout than the record, unless plan changes are allowed. It stays held
// while the pods of it do not answer.
Hold CheckPlanChange(const InferenceModel& model, const Workload& workload,
                     const std::string& pod_template, const std::vector<PodStatus>& pods,
                     bool allowed);

// Whether `replicas` pods of this template are ready and no others are left.
bool RolloutComplete(const Workload& workload, const std::string& pod_template, int64_t replicas);

}  // namespace ashlar::hooks
