#include "operator-hooks/rollout.h"

#include <fmt/format.h>

#include <algorithm>

#include "operator-hooks/names.h"

namespace ashlar::hooks {
namespace {

std::string Difference(const std::vector<std::string>& before,
                       const std::vector<std::string>& after) {
  std::string was, is;
  auto add = [](std::string& text, const std::string& line) {
    text += (text.empty() ? "" : "; ") + line;
  };
  for (const std::string& line : before) {
    if (std::find(after.begin(), after.end(), line) == after.end()) add(was, line);
  }
  for (const std::string& line : after) {
    if (std::find(before.begin(), before.end(), line) == before.end()) add(is, line);
  }
  return fmt::format("was {}; is {}", was.empty() ? "nothing" : was, is.empty() ? "nothing" : is);
}

}  // namespace

Hold CheckPlanChange(const InferenceModel& model, const Workload& workload,
                     const std::string& pod_template, const std::vector<PodStatus>& pods,
                     bool allowed) {
  const PlanOnRecord& record = model.status.plan;
  if (allowed || record.lines.empty() || record.pod_template == pod_template) return {};
  const std::string hostname = PodHostname(model.name, pod_template);
  bool answered = false;
  for (const PodStatus& pod : pods) {
    if (pod.hostname != hostname || pod.groups.empty()) continue;
    answered = true;
    std::vector<std::string> lines = PlanLines(pod);
    if (lines == record.lines) continue;
    return {true, fmt::format("the new pods plan otherwise: {}; set rollout.allowPlanChange, or "
                              "take the change back",
                              Difference(record.lines, lines))};
  }
  const Condition* before = Find(model.status.conditions, "Progressing");
  const bool was_held = workload.paused && workload.pod_template == pod_template &&
                        before != nullptr && before->reason == kPlanChanged;
  if (was_held && !answered) return {true, before->message};
  return {};
}

bool RolloutComplete(const Workload& workload, const std::string& pod_template, int64_t replicas) {
  return workload.present && workload.pod_template == pod_template &&
         workload.observed_generation >= workload.generation && workload.wanted == replicas &&
         workload.replicas == replicas && workload.updated == replicas &&
         workload.ready == replicas;
}

}  // namespace ashlar::hooks
