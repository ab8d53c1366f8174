#include "operator-hooks/status.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/checked.h"
#include "operator-hooks/names.h"

namespace ashlar::hooks {
namespace {

constexpr size_t kMaxMessage = 2048;

void WriteConditions(JsonWriter& out, const std::vector<Condition>& conditions,
                     int64_t generation) {
  out.Array("conditions", [&] {
    for (const Condition& condition : conditions) {
      out.Object([&] {
        out.Add("type", condition.type);
        out.Add("status", Name(condition.status));
        out.Add("observedGeneration", generation);
        out.Add("lastTransitionTime", condition.since);
        out.Add("reason", condition.reason);
        out.Add("message", CutText(condition.message, kMaxMessage));
      });
    }
  });
}

// For people; derived from the conditions alone.
std::string_view PhaseOf(const Facts& facts, const std::vector<Condition>& conditions) {
  auto is = [&](std::string_view type, Truth truth) {
    const Condition* condition = Find(conditions, type);
    return condition != nullptr && condition->status == truth;
  };
  const Workload& workload = facts.children.workload;
  if (is("Accepted", Truth::kFalse)) return "Failed";
  if (is("Ready", Truth::kTrue)) return "Ready";
  if (facts.desired && facts.desired->replicas == 0 && workload.replicas > 0) return "Draining";
  if (!workload.present || facts.model.suspend) return "Pending";
  bool failed = std::any_of(facts.pods.begin(), facts.pods.end(), [](const PodStatus& pod) {
    return pod.phase == "rejected" || pod.phase == "failed";
  });
  if (failed) return "Failed";
  if (!is("Scheduled", Truth::kTrue)) return "Scheduling";
  return is("SourceReady", Truth::kTrue) ? "Validating" : "Loading";
}

// A pod whose decisions are shown: of the wanted template, with a plan.
const PodStatus* Representative(const Facts& facts) {
  const PodStatus* any = nullptr;
  for (const PodStatus& pod : facts.pods) {
    if (pod.groups.empty()) continue;
    if (pod.hostname == PodHostname(facts.model.name, facts.pod_template)) return &pod;
    if (any == nullptr) any = &pod;
  }
  return any;
}

void WriteGroup(JsonWriter& out, const PodGroup& group, const PodStatus& pod, int64_t agreeing,
                int64_t total) {
  out.Object([&] {
    out.Add("index", group.index);
    out.Add("name", group.name);
    out.Add("kind", group.kind);
    out.Add("layers", group.layers);
    out.Add("blockSize", group.block_tokens);
    out.Add("kernelBlockSize", group.kernel_block_tokens);
    out.Add("dtype", group.dtype);
    out.Add("layout", pod.layout);
    out.Add("requestedBackend", group.requested);
    out.Add("backend", group.backend);
    out.Add("reason", group.reason);
    if (!group.rejected.empty()) {
      out.Array("rejected", [&] {
        for (const PodGroup::Rejected& rejected : group.rejected) {
          out.Object([&] {
            out.Add("backend", rejected.backend);
            out.Array("reasons", [&] {
              for (const std::string& reason : rejected.reasons) out.Item(reason);
            });
          });
        }
      });
    }
    out.Add("replicasAgreeing", agreeing);
    out.Add("replicasTotal", total);
  });
}

void WriteGroups(JsonWriter& out, const Facts& facts, const PodStatus& pod) {
  int64_t agreeing = 0, total = 0;
  for (const PodStatus& other : facts.pods) {
    if (other.groups.empty()) continue;
    ++total;
    if (PlanLines(other) == PlanLines(pod)) ++agreeing;
  }
  out.Array("kvGroups", [&] {
    for (const PodGroup& group : pod.groups) WriteGroup(out, group, pod, agreeing, total);
  });
}

std::string BackendsLine(const PodStatus& pod) {
  std::string line;
  for (const PodGroup& group : pod.groups)
    line += fmt::format("{}{}={}", line.empty() ? "" : ",", group.kind, group.backend);
  return line;
}

void WriteCapacity(JsonWriter& out, const Facts& facts) {
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  int64_t tokens = kNone, bytes = kNone;
  for (const PodStatus& pod : facts.pods) {
    if (pod.groups.empty()) continue;
    int64_t pod_bytes = 0;
    for (const PodGroup& group : pod.groups) {
      tokens = std::min(tokens, CheckedMul(group.blocks, group.block_tokens).value_or(kNone));
      pod_bytes = CheckedAdd(pod_bytes, group.bytes).value_or(kNone);
    }
    bytes = std::min(bytes, pod_bytes);
  }
  out.Object("capacity", [&] {
    out.Add("tokens", tokens);
    out.Add("bytes", bytes);
  });
}

// What the pods decided. It stays while there are no pods to ask, and while a rollout is held.
void WriteDecisions(JsonWriter& out, const Facts& facts) {
  const PodStatus* pod = Representative(facts);
  const PreviousStatus& before = facts.model.status;
  if (pod == nullptr || facts.hold.held) {
    out.AddIf("podTemplate", before.plan.pod_template);
    out.AddIf("backends", before.backends);
    out.Raw("platform", before.platform);
    out.Raw("kvGroups", before.kv_groups);
    out.Raw("capacity", before.capacity);
    return;
  }
  const std::string prefix = facts.model.name + "-";
  out.AddIf("podTemplate", pod->hostname.starts_with(prefix) ? pod->hostname.substr(prefix.size())
                                                             : before.plan.pod_template);
  out.Add("backends", BackendsLine(*pod));
  out.Object("platform", [&] {
    out.Add("name", pod->platform);
    out.Add("product", pod->product);
    out.Add("pods",
            std::count_if(facts.pods.begin(), facts.pods.end(), [&](const PodStatus& other) {
              return other.platform == pod->platform && other.product == pod->product;
            }));
  });
  WriteGroups(out, facts, *pod);
  WriteCapacity(out, facts);
}

void WritePlans(JsonWriter& out, const Verdict& verdict) {
  constexpr size_t kMaxPlans = 16;
  if (verdict.plans.empty()) return;
  out.Array("plan", [&] {
    for (size_t i = 0; i < std::min(verdict.plans.size(), kMaxPlans); ++i) {
      const NodePlan& plan = verdict.plans[i];
      out.Object([&] {
        out.Add("nodes", plan.nodes);
        out.Add("count", plan.count);
        out.Add("fits", plan.fits);
        out.AddIf("backends", plan.backends);
        if (!plan.problems.empty()) out.Add("message", CutText(plan.problems.front().Text(), 512));
      });
    }
  });
}

// The first failed check of any pod; what was last seen outlives the pod.
void WriteLastFailure(JsonWriter& out, const Facts& facts, std::string_view now) {
  LastFailure failure = facts.model.status.last_failure;
  for (const PodStatus& pod : facts.pods) {
    auto failed = std::find_if(pod.checks.begin(), pod.checks.end(),
                               [](const PodCheck& check) { return check.state == "failed"; });
    if (failed == pod.checks.end()) continue;
    bool same = failure.pod == pod.address && failure.check == failed->name &&
                failure.message == failed->message;
    if (!same) failure = {std::string(now), pod.address, failed->name, failed->message};
    break;
  }
  if (failure.check.empty()) return;
  out.Object("lastFailure", [&] {
    out.Add("time", failure.time);
    out.Add("pod", failure.pod);
    out.Add("check", failure.check);
    out.Add("message", failure.message);
  });
}

void WriteEndpoints(JsonWriter& out, const Desired& desired) {
  out.Object("endpoints", [&] {
    out.Add("service", desired.name);
    out.Add("url", fmt::format("http://{}.{}.svc.{}:{}/v1", desired.name, desired.ns,
                               desired.settings.cluster_domain, desired.spec.server.port));
    out.Add("port", desired.spec.server.port);
  });
}

}  // namespace

std::string MakeStatus(const Facts& facts, std::vector<Condition> conditions, int64_t now) {
  const std::string time = Timestamp(now);
  KeepTimes(facts.model.status.conditions, time, conditions);
  const Workload& workload = facts.children.workload;
  JsonWriter out;
  out.Object([&] {
    out.Add("observedGeneration", facts.model.generation);
    if (facts.verdict.spec) out.Add("modelDigest", facts.verdict.spec->digest);
    out.Add("phase", PhaseOf(facts, conditions));
    WriteConditions(out, conditions, facts.model.generation);
    WriteDecisions(out, facts);
    WritePlans(out, facts.verdict);
    out.Add("replicas", workload.replicas);
    out.Add("readyReplicas", workload.ready);
    out.Add("updatedReplicas", workload.updated);
    out.Add("selector", fmt::format("{}={}", kModelLabel, facts.model.name));
    if (facts.desired) WriteEndpoints(out, *facts.desired);
    WriteLastFailure(out, facts, time);
  });
  return out.Take();
}

bool AtRest(const Facts& facts) {
  if (!facts.desired) return true;
  const Desired& desired = *facts.desired;
  if (facts.hold.held && desired.replicas > 0) return true;
  // Pods are asked after their workload has changed: what the status says of them comes later.
  const size_t wanted = static_cast<size_t>(desired.replicas * desired.devices.pods);
  return facts.pods.size() == std::min(wanted, kPolledPods) &&
         RolloutComplete(facts.children.workload, facts.pod_template, desired.replicas);
}

}  // namespace ashlar::hooks
