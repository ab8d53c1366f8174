#include "operator-hooks/inference_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "operator-hooks/pod_status.h"

namespace ashlar::hooks {
namespace {

constexpr int64_t kAny = std::numeric_limits<int32_t>::max();
constexpr int64_t kDay = 86'400;
constexpr std::array<std::string_view, 4> kVendors = {"auto", "nvidia", "amd", "cpu"};
constexpr std::array<std::string_view, 2> kMismatch = {"Refuse", "Degrade"};
constexpr std::array<std::string_view, 3> kMetrics = {"queue", "kv", "concurrency"};
constexpr std::array<std::string_view, 3> kProviders = {"hpa", "keda", "none"};
constexpr std::array<std::string_view, 2> kWorkloads = {"Deployment", "LeaderWorkerSet"};
// Members of spec that are not wishes.
constexpr std::array<std::string_view, 3> kNotWishes = {"model", "replicas", "suspend"};

std::optional<int64_t> Optional(const ObjectReader& reader, std::string_view key, int64_t max) {
  if (!reader.Has(key)) return std::nullopt;
  return reader.Integer(key, 0, max, 0);
}

ModelSource ReadSource(const ObjectReader& reader) {
  ModelSource source;
  source.uri = reader.Text("uri");
  ObjectReader image = reader.Object("image");
  source.image = image.Text("reference");
  source.image_pull_policy = image.Text("pullPolicy");
  source.secret = reader.Object("secretRef").Text("name");
  ObjectReader claim = reader.Object("cache").Object("pvc");
  source.cache.claim_name = claim.Text("claimName");
  source.cache.size = claim.Text("size");
  source.cache.storage_class = claim.Text("storageClassName");
  source.cache.access_modes = claim.Texts("accessModes");
  if (source.cache.access_modes.empty()) source.cache.access_modes = {"ReadWriteOnce"};
  return source;
}

DeviceRequest ReadDeviceRequest(const ObjectReader& reader) {
  return {reader.Text("deviceClassName"), reader.Texts("selectors")};
}

Accelerator ReadAccelerator(const ObjectReader& reader) {
  Accelerator accelerator;
  accelerator.vendor = reader.Word("vendor", kVendors, "");
  accelerator.count = Optional(reader, "count", 4096);
  accelerator.resource_name = reader.Text("resourceName");
  accelerator.products = reader.Texts("products");
  accelerator.min_memory_gib = reader.Integer("minMemoryGiB", 0, 4096, 0);
  accelerator.degrade_on_mismatch = reader.Word("onMismatch", kMismatch, "Refuse") == "Degrade";
  ObjectReader claim = reader.Object("claim");
  accelerator.claim.template_name = claim.Text("templateName");
  if (claim.Has("deviceClassName")) accelerator.claim.exact = ReadDeviceRequest(claim);
  for (const ObjectReader& entry : claim.Objects("firstAvailable"))
    accelerator.claim.first_available.push_back(ReadDeviceRequest(entry));
  return accelerator;
}

Scaling ReadScaling(const ObjectReader& reader) {
  Scaling scaling;
  scaling.min = reader.Integer("min", 0, 10'000, scaling.min);
  scaling.max = reader.Integer("max", 1, 10'000, std::max<int64_t>(scaling.min, 1));
  scaling.metric = reader.Word("metric", kMetrics, scaling.metric);
  scaling.target = reader.Integer("target", 1, 100'000, scaling.target);
  scaling.cooldown_seconds = reader.Integer("cooldownSeconds", 0, kDay, scaling.cooldown_seconds);
  scaling.provider = reader.Word("provider", kProviders, scaling.provider);
  return scaling;
}

PodSettings ReadPod(const ObjectReader& reader) {
  PodSettings pod;
  pod.node_selector = reader.TextMap("nodeSelector");
  pod.labels = reader.TextMap("labels");
  pod.annotations = reader.TextMap("annotations");
  pod.tolerations = reader.RawList("tolerations");
  pod.affinity = reader.RawObject("affinity");
  pod.topology_spread = reader.RawList("topologySpread");
  pod.image_pull_secrets = reader.RawList("imagePullSecrets");
  pod.env = reader.RawList("env");
  pod.priority_class = reader.Text("priorityClassName");
  pod.runtime_class = reader.Text("runtimeClassName");
  pod.scheduler = reader.Text("schedulerName");
  pod.service_account = reader.Text("serviceAccountName");
  pod.shm_size = reader.Text("shmSize");
  pod.requests = reader.Object("resources").TextMap("requests", true);
  pod.limits = reader.Object("resources").TextMap("limits", true);
  for (const ObjectReader& entry : reader.Objects("extraVolumes")) {
    pod.extra_volumes.push_back(
        {entry.Text("mountPath"), entry.RawObject("volume"), entry.Flag("readOnly", false)});
  }
  ObjectReader security = reader.Object("securityContext");
  pod.run_as_user = security.Integer("runAsUser", 1, kAny, pod.run_as_user);
  pod.supplemental_groups = security.Integers("supplementalGroups", 1, kAny);
  pod.read_only_root = security.Flag("readOnlyRootFilesystem", true);
  return pod;
}

Wishes ReadWishesOf(const ObjectReader& spec) {
  Wishes wishes;
  wishes.source = ReadSource(spec.Object("source"));
  wishes.accelerator = ReadAccelerator(spec.Object("accelerator"));
  if (spec.Has("scaling")) wishes.scaling = ReadScaling(spec.Object("scaling"));
  ObjectReader rollout = spec.Object("rollout");
  wishes.max_surge = Optional(rollout, "maxSurge", 10'000);
  wishes.max_unavailable = Optional(rollout, "maxUnavailable", 10'000);
  wishes.min_ready_seconds = rollout.Integer("minReadySeconds", 0, 3600, 0);
  wishes.progress_deadline_seconds = rollout.Integer("progressDeadlineSeconds", 60, 2 * kDay, 0);
  wishes.allow_plan_change = rollout.Flag("allowPlanChange", false);
  wishes.load_budget_seconds =
      spec.Object("probes").Integer("loadBudgetSeconds", 30, kDay, wishes.load_budget_seconds);
  ObjectReader drain = spec.Object("drain");
  wishes.pre_stop_seconds = drain.Integer("preStopSeconds", 0, 3600, wishes.pre_stop_seconds);
  wishes.drain_seconds = Optional(drain, "timeoutSeconds", kDay);
  wishes.leader_worker_set = spec.Word("workload", kWorkloads, "Deployment") == kWorkloads[1];
  ObjectReader router = spec.Object("router");
  wishes.router = {router.Flag("enabled", false), router.Text("role"), router.Text("pool"),
                   router.Text("engineType", "vllm")};
  ObjectReader network = spec.Object("network");
  wishes.network_policy = network.Flag("policy", true);
  wishes.allow_from = network.RawList("allowFrom");
  ObjectReader observability = spec.Object("observability");
  if (observability.Has("podMonitor")) wishes.pod_monitor = observability.Flag("podMonitor", true);
  wishes.pod = ReadPod(spec.Object("pod"));
  wishes.image = spec.Text("image");
  return wishes;
}

Truth TruthOf(const std::string& word) {
  if (word == "True") return Truth::kTrue;
  return word == "False" ? Truth::kFalse : Truth::kUnknown;
}

PreviousStatus ReadStatus(const ObjectReader& reader) {
  PreviousStatus status;
  for (const ObjectReader& entry : reader.Objects("conditions")) {
    status.conditions.push_back({entry.Text("type"), TruthOf(entry.Text("status")),
                                 entry.Text("reason"), entry.Text("message"),
                                 entry.Text("lastTransitionTime")});
  }
  status.backends = reader.Text("backends");
  status.kv_groups = reader.RawList("kvGroups");
  status.platform = reader.RawObject("platform");
  status.capacity = reader.RawObject("capacity");
  status.plan.pod_template = reader.Text("podTemplate");
  for (const ObjectReader& group : reader.Objects("kvGroups")) {
    status.plan.lines.push_back(PlanLine(group.Text("name"), group.Text("backend"),
                                         group.Integer("blockSize", 0, kAny, 0),
                                         group.Text("layout")));
  }
  ObjectReader failure = reader.Object("lastFailure");
  status.last_failure = {failure.Text("time"), failure.Text("pod"), failure.Text("check"),
                         failure.Text("message")};
  return status;
}

}  // namespace

Wishes ReadWishes(JsonElement value, const std::string& path, Problems& problems) {
  return ReadWishesOf(ObjectReader(value, path, problems));
}

InferenceModel ReadInferenceModel(JsonElement value, const std::string& path, Problems& problems) {
  ObjectReader object(value, path, problems);
  InferenceModel model;
  if (object.Text("kind") != "InferenceModel" || object.Text("apiVersion") != kGroupVersion) {
    object.Refuse("kind", fmt::format("{} of {}", object.Text("kind"), object.Text("apiVersion")),
                  fmt::format("InferenceModel of {}", kGroupVersion),
                  "point the controller's parentResource at inferencemodels");
    return model;
  }
  ObjectReader metadata = object.Object("metadata");
  model.name = metadata.Text("name");
  model.ns = metadata.Text("namespace");
  model.uid = metadata.Text("uid");
  model.generation = metadata.Integer("generation", 0, std::numeric_limits<int64_t>::max(), 0);
  if (model.name.empty()) metadata.Refuse("name", "nothing", "a name", "give the model a name");
  ObjectReader spec = object.Object("spec");
  model.model = spec.RawObject("model");
  if (model.model.empty())
    spec.Refuse("model", "nothing", "a ModelSpec as an object", "write the model's fields there");
  model.wishes_text = spec.RawWithout(kNotWishes);
  model.wishes = ReadWishesOf(spec);
  model.replicas = spec.Integer("replicas", 0, 10'000, 1);
  model.suspend = spec.Flag("suspend", false);
  model.status = ReadStatus(object.Object("status"));
  return model;
}

}  // namespace ashlar::hooks
