#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "operator-hooks/status.h"

namespace ashlar::hooks {
namespace {

// A condition that the pods' readiness checks decide.
struct CheckedCondition {
  std::string_view type;
  std::array<std::string_view, 2> checks;  // names at /status, "" ends
  std::string_view passed, pending;        // reasons
};
constexpr CheckedCondition kSource = {"SourceReady", {"source", "weights"}, "Loaded", "Loading"};
constexpr CheckedCondition kPlatform = {
    "PlatformDetected", {"platform", ""}, "Found", "NotReached"};
constexpr CheckedCondition kBackends = {
    "BackendsSelected", {"backends", ""}, "Selected", "NotReached"};
constexpr CheckedCondition kShapes = {
    "ShapesValidated", {"shapes", "blocks"}, "Validated", "NotReached"};
constexpr CheckedCondition kServing = {"Serving", {"selfTest", "engine"}, "Serving", "Warming"};

Condition Make(std::string_view type, Truth status, std::string_view reason,
               std::string message = "") {
  return {std::string(type), status, std::string(reason), std::move(message), ""};
}

int64_t Replicas(const Facts& facts) { return facts.desired ? facts.desired->replicas : 0; }
bool AnyReady(const Facts& facts) { return facts.children.workload.ready > 0; }

// Pods of the wanted template, or all while there is none of it yet.
std::vector<const PodStatus*> PodsThatCount(const Facts& facts) {
  std::vector<const PodStatus*> pods;
  for (const PodStatus& pod : facts.pods) {
    if (facts.desired && pod.digest == facts.desired->spec.digest) pods.push_back(&pod);
  }
  if (pods.empty()) {
    for (const PodStatus& pod : facts.pods) pods.push_back(&pod);
  }
  return pods;
}

// Without pods, why there are none.
Condition NoPods(const Facts& facts, std::string_view type) {
  if (facts.model.suspend) return Make(type, Truth::kUnknown, "Suspended", "spec.suspend is true");
  if (facts.desired && Replicas(facts) == 0)
    return Make(type, Truth::kUnknown, "ScaledToZero", "no replica is asked for");
  return Make(type, Truth::kUnknown, "NoPods", "no pod answers yet");
}

Condition FromChecks(const Facts& facts, const CheckedCondition& row) {
  std::vector<const PodStatus*> pods = PodsThatCount(facts);
  size_t passed = 0;
  for (const PodStatus* pod : pods) {
    bool all = true;
    for (std::string_view name : row.checks) {
      const PodCheck* check = name.empty() ? nullptr : pod->Check(name);
      if (name.empty()) continue;
      if (check != nullptr && check->state == "failed") {
        return Make(row.type, Truth::kFalse, check->reason.empty() ? "Failed" : check->reason,
                    check->message);
      }
      all = all && check != nullptr && check->state == "passed";
    }
    passed += all ? 1 : 0;
  }
  // A pod that is ready has passed every check, also before it was first asked.
  if (passed > 0 || AnyReady(facts)) return Make(row.type, Truth::kTrue, row.passed);
  if (pods.empty()) return NoPods(facts, row.type);
  return Make(row.type, Truth::kUnknown, row.pending,
              fmt::format("{} of {} pods have passed", passed, pods.size()));
}

Condition Accepted(const Facts& facts) {
  return Make("Accepted", facts.verdict.accepted ? Truth::kTrue : Truth::kFalse,
              facts.verdict.reason, facts.verdict.message);
}

Condition SourceReady(const Facts& facts) {
  if (!facts.download_failure.empty())
    return Make(kSource.type, Truth::kFalse, "DownloadFailed", facts.download_failure);
  if (facts.downloading) {
    return Make(kSource.type, Truth::kUnknown, "Downloading",
                fmt::format("{} is being fetched", facts.model.wishes.source.uri));
  }
  return FromChecks(facts, kSource);
}

// What all nodes together offer of the devices, compared with what all replicas ask for.
std::string TooFewDevices(const Facts& facts) {
  const DeviceWish& wish = facts.desired->devices;
  if (wish.resource.empty() || facts.nodes.empty()) return "";
  int64_t places = 0, offered = 0;
  for (const NodeKind& kind : facts.nodes) {
    auto found = kind.devices.find(wish.resource);
    if (found == kind.devices.end()) continue;
    offered += kind.count * found->second;
    places += kind.count * (found->second / wish.per_pod);
  }
  const int64_t pods = Replicas(facts) * wish.pods;
  if (places >= pods) return "";
  return fmt::format("{} pods of {} {} need more than the {} that all nodes offer", pods,
                     wish.per_pod, wish.resource, offered);
}

Condition Scheduled(const Facts& facts) {
  constexpr std::string_view kType = "Scheduled";
  const Workload& workload = facts.children.workload;
  if (Replicas(facts) == 0) return NoPods(facts, kType);
  int64_t running = std::max<int64_t>(static_cast<int64_t>(facts.pods.size()), workload.ready);
  if (running >= Replicas(facts)) return Make(kType, Truth::kTrue, "PodsRunning");
  if (std::string message = TooFewDevices(facts); !message.empty())
    return Make(kType, Truth::kFalse, "InsufficientAccelerator", message);
  std::string message =
      fmt::format("{} of {} pods run; kubectl describe pod -l ashlar.dev/model={}", running,
                  Replicas(facts), facts.model.name);
  if (workload.deadline_exceeded) return Make(kType, Truth::kFalse, "DeadlineExceeded", message);
  return Make(kType, Truth::kUnknown, "WaitingForPods", message);
}

// The first pod on another platform than the vendor that was asked for.
const PodStatus* WrongVendor(const Facts& facts) {
  const std::string& asked = facts.model.wishes.accelerator.vendor;
  if (asked.empty() || asked == "auto") return nullptr;
  for (const PodStatus& pod : facts.pods) {
    bool host = asked == "cpu" && pod.platform == "reference";
    if (!pod.platform.empty() && pod.platform != PlatformName(asked) && !host) return &pod;
  }
  return nullptr;
}

std::string MismatchText(const Facts& facts, const PodStatus& pod) {
  return fmt::format("spec.accelerator.vendor is {}, but a pod runs on {} ({})",
                     facts.model.wishes.accelerator.vendor, pod.platform, pod.product);
}

Condition PlatformDetected(const Facts& facts) {
  const PodStatus* wrong = WrongVendor(facts);
  if (wrong != nullptr && !facts.model.wishes.accelerator.degrade_on_mismatch)
    return Make(kPlatform.type, Truth::kFalse, "WrongVendor", MismatchText(facts, *wrong));
  return FromChecks(facts, kPlatform);
}

Condition Serving(const Facts& facts) {
  Condition condition = FromChecks(facts, kServing);
  const Workload& workload = facts.children.workload;
  if (condition.status == Truth::kTrue && !AnyReady(facts))
    condition = Make(kServing.type, Truth::kUnknown, kServing.pending, "no pod is ready yet");
  if (condition.reason == kServing.pending && workload.deadline_exceeded)
    return Make(kServing.type, Truth::kFalse, "LoadTimeout", condition.message);
  return condition;
}

Condition Ready(const Facts& facts, std::span<const Condition> before) {
  const Workload& workload = facts.children.workload;
  auto no = [](std::string_view reason, std::string message) {
    return Make("Ready", Truth::kFalse, reason, std::move(message));
  };
  if (!facts.verdict.accepted) return no(before.front().reason, before.front().message);
  if (facts.model.suspend) return no("Suspended", "spec.suspend is true");
  if (facts.downloading || !facts.download_failure.empty())
    return no(before[1].reason, before[1].message);
  if (Replicas(facts) == 0) {
    if (workload.replicas > 0) return no("Draining", "pods of earlier replicas end");
    return Make("Ready", Truth::kTrue, "ScaledToZero", "no replica is asked for");
  }
  // What failed says more than what is not decided yet.
  for (Truth truth : {Truth::kFalse, Truth::kUnknown}) {
    for (const Condition& condition : before) {
      if (condition.status == truth) return no(condition.reason, condition.message);
    }
  }
  if (facts.hold.held) return no(kPlanChanged, facts.hold.message);
  if (!RolloutComplete(workload, facts.pod_template, Replicas(facts))) {
    return no("RolloutInProgress", fmt::format("{} of {} replicas are new and {} are ready",
                                               workload.updated, Replicas(facts), workload.ready));
  }
  return Make("Ready", Truth::kTrue, "Ready", fmt::format("{} replicas serve", workload.ready));
}

Condition Progressing(const Facts& facts) {
  constexpr std::string_view kType = "Progressing";
  if (!facts.desired) return Make(kType, Truth::kFalse, "NothingToDo", "no spec was accepted");
  if (facts.hold.held) return Make(kType, Truth::kFalse, kPlanChanged, facts.hold.message);
  if (RolloutComplete(facts.children.workload, facts.pod_template, Replicas(facts)))
    return Make(kType, Truth::kFalse, "Complete");
  if (facts.children.workload.deadline_exceeded)
    return Make(kType, Truth::kFalse, "DeadlineExceeded", "the rollout has not ended in its time");
  return Make(kType, Truth::kTrue, "RollingOut");
}

// Pods of one template that decided differently: their nodes differ.
bool ReplicasDisagree(const Facts& facts) {
  std::vector<std::string> first;
  for (const PodStatus* pod : PodsThatCount(facts)) {
    std::vector<std::string> lines = PlanLines(*pod);
    if (lines.empty()) continue;
    if (first.empty()) first = lines;
    if (lines != first) return true;
  }
  return false;
}

Condition Degraded(const Facts& facts) {
  constexpr std::string_view kType = "Degraded";
  auto yes = [&](std::string_view reason, std::string message) {
    return Make(kType, Truth::kTrue, reason, std::move(message));
  };
  const Workload& workload = facts.children.workload;
  if (!facts.missing_kinds.empty()) {
    return yes("MissingCRD", fmt::format("the cluster does not know {}; install it, or take the "
                                         "wish for it back",
                                         fmt::join(facts.missing_kinds, ", ")));
  }
  if (!facts.verdict.accepted && facts.desired)
    return yes("SpecRefused", "the spec accepted before it is still served");
  const PodStatus* wrong = WrongVendor(facts);
  if (wrong != nullptr) return yes("WrongVendor", MismatchText(facts, *wrong));
  if (!facts.hold.held && ReplicasDisagree(facts))
    return yes("ReplicasDisagree", "replicas chose different backends, block sizes or layouts");
  if (workload.ready > 0 && workload.ready < Replicas(facts))
    return yes("FewerReady",
               fmt::format("{} of {} replicas are ready", workload.ready, Replicas(facts)));
  return Make(kType, Truth::kFalse, "AsDesired");
}

}  // namespace

std::vector<Condition> MakeConditions(const Facts& facts) {
  std::vector<Condition> conditions = {
      Accepted(facts),         SourceReady(facts),           Scheduled(facts),
      PlatformDetected(facts), FromChecks(facts, kBackends), FromChecks(facts, kShapes),
      Serving(facts)};
  conditions.push_back(Ready(facts, conditions));
  conditions.push_back(Progressing(facts));
  conditions.push_back(Degraded(facts));
  return conditions;
}

}  // namespace ashlar::hooks
