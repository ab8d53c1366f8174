#include "operator-hooks/sync.h"

#include <algorithm>

#include "operator-hooks/desired.h"
#include "operator-hooks/names.h"
#include "operator-hooks/pod_template.h"
#include "operator-hooks/rollout.h"
#include "operator-hooks/status.h"

namespace ashlar::hooks {
namespace {

// The spec that the children are made from: the present one, or while that is refused the last one
// that was accepted, which the workload's annotations and its ConfigMap still hold.
struct Effective {
  Wishes wishes;
  std::string wishes_text;
  Spec spec;
};

std::optional<Effective> LastAccepted(const Children& children) {
  const DocumentMap* map = children.Find(children.workload.digest);
  if (!children.workload.present || map == nullptr) return std::nullopt;
  JsonParser parser;
  Result<JsonElement> wishes = parser.Parse(children.workload.wishes_text, "accepted-spec");
  Result<Spec> spec = LoadSpec(map->document, std::string(kDocumentFile));
  if (!wishes || !spec) return std::nullopt;
  Problems problems;
  Effective effective{ReadWishes(*wishes, "", problems), children.workload.wishes_text,
                      *std::move(spec)};
  if (!problems.empty()) return std::nullopt;
  return effective;
}

std::optional<Effective> EffectiveSpec(const Observed& observed, const Verdict& verdict) {
  if (!verdict.accepted) return LastAccepted(observed.children);
  return Effective{observed.model.wishes, observed.model.wishes_text, *verdict.spec};
}

// What a model needs that not every cluster has. Without one of `required` it cannot run at all.
struct OptionalKinds {
  std::vector<std::string> required, missing;
};

OptionalKinds MissingKinds(const Wishes& wishes, const Children& children) {
  OptionalKinds kinds;
  auto need = [&](bool wanted, std::string_view kind, std::vector<std::string>& list) {
    if (wanted && !children.Knows(kind)) list.emplace_back(kind);
  };
  const Accelerator::Claim& claim = wishes.accelerator.claim;
  need(wishes.leader_worker_set, kLeaderWorkerSets, kinds.required);
  need(claim.present() && claim.template_name.empty(), kClaimTemplates, kinds.required);
  if (wishes.scaling) {
    need(wishes.scaling->provider == "hpa", kAutoscalers, kinds.missing);
    need(wishes.scaling->provider == "keda", kScaledObjects, kinds.missing);
  }
  need(wishes.pod_monitor.value_or(false), kPodMonitors, kinds.missing);
  return kinds;
}

std::shared_ptr<const Verdict> JudgeWithKinds(const Observed& observed, const Settings& settings,
                                              VerdictMemo* memo) {
  std::shared_ptr<const Verdict> verdict =
      memo != nullptr
          ? memo->For(observed.model, observed.nodes, settings)
          : std::make_shared<const Verdict>(Judge(observed.model, observed.nodes, settings));
  OptionalKinds kinds = MissingKinds(observed.model.wishes, observed.children);
  if (!verdict->accepted || kinds.required.empty()) return verdict;
  Verdict refused = *verdict;
  refused.accepted = false;
  refused.reason = "MissingCRD";
  refused.problems = {{"spec", "the cluster does not know " + kinds.required.front(),
                       "kinds that are installed",
                       "install it, then restart the hooks' controller"}};
  refused.message = Text(refused.problems);
  return std::make_shared<const Verdict>(std::move(refused));
}

const DownloadState* Download(const Desired& desired, const Children& children) {
  auto found = children.downloads.find(DownloadNameOf(desired));
  return found == children.downloads.end() ? nullptr : &found->second;
}

bool NeedsDownload(const Desired& desired) {
  return desired.wishes.source.downloaded() && desired.wishes.source.has_claim();
}

Desired DesiredOf(const Observed& observed, const Effective& effective, const Settings& settings) {
  const InferenceModel& model = observed.model;
  return {.name = model.name,
          .ns = model.ns,
          .wishes = effective.wishes,
          .wishes_text = effective.wishes_text,
          .spec = effective.spec,
          .settings = settings,
          .devices = DevicesOf(effective.wishes, effective.spec),
          .replicas = model.suspend || observed.finalizing ? 0 : model.replicas,
          .paused = false};
}

// No pod starts on a claim that is still being filled.
void CheckDownload(const Children& children, Desired& desired, Facts& facts) {
  if (!NeedsDownload(desired)) return;
  const DownloadState* download = Download(desired, children);
  facts.downloading = download == nullptr || !download->succeeded;
  if (download != nullptr && download->failed) facts.download_failure = download->message;
  if (facts.downloading) desired.replicas = 0;
}

// Documents of pods that a rollout has not replaced yet.
void KeepDocuments(const Observed& observed, const Desired& desired,
                   const std::string& pod_template, std::vector<std::string>& out) {
  if (RolloutComplete(observed.children.workload, pod_template, desired.replicas)) return;
  for (const DocumentMap& map : observed.children.documents) {
    if (map.digest != desired.spec.digest)
      out.push_back(BuildConfigMap(desired.name, desired.ns, map.digest, map.document));
  }
}

bool Scales(const Desired& desired, const Children& children, std::string_view provider,
            std::string_view kind) {
  const std::optional<Scaling>& scaling = desired.wishes.scaling;
  return scaling && scaling->provider == provider && children.Knows(kind);
}

// One line a child kind.
std::vector<std::string> BuildChildren(const Observed& observed, const Desired& desired,
                                       const std::string& pod_template) {
  const Wishes& wishes = desired.wishes;
  const Children& known = observed.children;
  const Accelerator::Claim& claim = wishes.accelerator.claim;
  const bool alive = !observed.model.suspend && !observed.finalizing;
  std::vector<std::string> out;
  auto add = [&](bool wanted, std::string (*build)(const Desired&)) {
    if (wanted) out.push_back(build(desired));
  };
  KeepDocuments(observed, desired, pod_template, out);
  add(true, BuildConfigMap);
  add(NeedsDownload(desired) && wishes.source.cache.claim_name.empty(), BuildClaim);
  add(claim.present() && claim.template_name.empty(), BuildClaimTemplate);
  add(NeedsDownload(desired), BuildDownloadJob);
  add(true, BuildService);
  add(true, BuildPodsService);
  add(wishes.network_policy, BuildNetworkPolicy);
  add(desired.replicas > 1, BuildDisruptionBudget);
  add(!wishes.leader_worker_set, BuildDeployment);
  add(wishes.leader_worker_set, BuildLeaderWorkerSet);
  add(wishes.pod_monitor.value_or(true) && known.Knows(kPodMonitors), BuildPodMonitor);
  add(alive && Scales(desired, known, "hpa", kAutoscalers), BuildAutoscaler);
  add(alive && Scales(desired, known, "keda", kScaledObjects), BuildScaledObject);
  return out;
}

// Soon while something is going on, in a minute at rest; models do not all come at once.
int64_t ResyncSeconds(const Facts& facts) {
  int64_t spread = 0;
  for (char c : facts.model.uid) spread = (spread * 31 + static_cast<unsigned char>(c)) % 1009;
  return AtRest(facts) ? 60 + spread % 10 : 2 + spread % 3;
}

// Pods end before the children that they are reached and configured by.
bool PodsAreLeft(const Children& children, const Snapshot& snapshot) {
  const Workload& workload = children.workload;
  return workload.present &&
         (workload.wanted > 0 || workload.replicas > 0 || !snapshot.pods.empty());
}

}  // namespace

Observed ReadObserved(JsonElement request, Problems& problems) {
  ObjectReader reader(request, "", problems);
  Observed observed;
  observed.finalizing = reader.Flag("finalizing", false);
  JsonElement parent;
  if (request.at_key("parent").get(parent) != simdjson::SUCCESS) {
    reader.Refuse("parent", "nothing", "an InferenceModel", "send what Metacontroller sends");
    return observed;
  }
  observed.model = ReadInferenceModel(parent, "parent", problems);
  observed.children = ReadChildren(reader, observed.model.name);
  observed.nodes = ReadNodes(reader);
  return observed;
}

Reconciled Reconcile(const Observed& observed, const Snapshot& snapshot, int64_t now,
                     const Settings& settings, VerdictMemo* memo) {
  const InferenceModel& model = observed.model;
  std::shared_ptr<const Verdict> verdict = JudgeWithKinds(observed, settings, memo);
  std::vector<PodStatus> pods = snapshot.pods;
  std::sort(pods.begin(), pods.end(),
            [](const PodStatus& a, const PodStatus& b) { return a.address < b.address; });
  Facts facts{.model = model,
              .verdict = *verdict,
              .children = observed.children,
              .nodes = observed.nodes,
              .pods = pods,
              .desired = nullptr,
              .pod_template = {},
              .hold = {},
              .missing_kinds = {},
              .download_failure = {}};
  std::optional<Effective> effective = EffectiveSpec(observed, *verdict);
  std::optional<Desired> desired;
  if (effective) {
    desired.emplace(DesiredOf(observed, *effective, settings));
    CheckDownload(observed.children, *desired, facts);
    facts.pod_template = BuildPodTemplate(*desired).id;
    facts.hold = CheckPlanChange(model, observed.children.workload, facts.pod_template, pods,
                                 desired->wishes.allow_plan_change);
    desired->paused = facts.hold.held;
    facts.desired = &*desired;
    facts.missing_kinds = MissingKinds(desired->wishes, observed.children).missing;
  }
  Reconciled result;
  result.finalized = observed.finalizing && !PodsAreLeft(observed.children, snapshot);
  if (desired && !result.finalized)
    result.children = BuildChildren(observed, *desired, facts.pod_template);
  std::vector<Condition> conditions = MakeConditions(facts);
  for (const Condition& condition : conditions) result.truths.push_back(condition.status);
  result.status = MakeStatus(facts, std::move(conditions), now);
  result.resync_seconds = ResyncSeconds(facts);
  return result;
}

std::string Reconciled::Body(bool finalizing) const {
  JsonWriter out;
  out.Object([&] {
    out.Raw("status", status);
    out.Array("children", [&] {
      for (const std::string& child : children) out.RawItem(child);
    });
    out.Add("resyncAfterSeconds", resync_seconds);
    if (finalizing) out.Add("finalized", finalized);
  });
  return out.Take();
}

}  // namespace ashlar::hooks
