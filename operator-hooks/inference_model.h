// The custom resource as a value: what the hooks read of it. manifests/crd.yaml describes each
// field.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator-hooks/condition.h"
#include "operator-hooks/json_reader.h"

namespace ashlar::hooks {

inline constexpr std::string_view kGroupVersion = "ashlar.dev/v1alpha1";

// A DRA request for devices of one class.
struct DeviceRequest {
  std::string device_class;
  std::vector<std::string> selectors;
};

struct ModelSource {
  std::string uri;
  std::string image, image_pull_policy;
  std::string secret;
  struct Cache {
    std::string claim_name;           // one that exists
    std::string size, storage_class;  // one of ours
    std::vector<std::string> access_modes;
  } cache;

  bool present() const { return !uri.empty() || !image.empty(); }
  bool downloaded() const { return uri.starts_with("hf://") || uri.starts_with("s3://"); }
  bool has_claim() const { return !cache.claim_name.empty() || !cache.size.empty(); }
};

struct Accelerator {
  std::string vendor;  // auto, nvidia, amd, cpu or ""
  std::optional<int64_t> count;
  std::string resource_name;
  std::vector<std::string> products;
  int64_t min_memory_gib = 0;
  bool degrade_on_mismatch = false;
  struct Claim {
    std::string template_name;
    std::optional<DeviceRequest> exact;
    std::vector<DeviceRequest> first_available;
    bool present() const {
      return !template_name.empty() || exact.has_value() || !first_available.empty();
    }
  } claim;
};

struct Scaling {
  int64_t min = 1, max = 1, target = 10, cooldown_seconds = 300;
  std::string metric = "queue";   // queue, kv or concurrency
  std::string provider = "none";  // hpa, keda or none
};

// Texts of JSON values are passed on as they are.
struct PodSettings {
  std::map<std::string, std::string> node_selector, labels, annotations, requests, limits;
  std::string tolerations, affinity, topology_spread, image_pull_secrets, env;
  std::string priority_class, runtime_class, scheduler, service_account, shm_size;
  struct Volume {
    std::string mount_path, volume;
    bool read_only = false;
  };
  std::vector<Volume> extra_volumes;
  int64_t run_as_user = 10001;
  std::vector<int64_t> supplemental_groups;
  bool read_only_root = true;
};

// What decides the shape of the children: all of spec but the model, the number of replicas and
// suspend.
struct Wishes {
  ModelSource source;
  Accelerator accelerator;
  std::optional<Scaling> scaling;
  std::optional<int64_t> max_surge, max_unavailable;
  int64_t min_ready_seconds = 0, progress_deadline_seconds = 0;  // 0: from the load budget
  bool allow_plan_change = false;
  int64_t load_budget_seconds = 1800;
  int64_t pre_stop_seconds = 15;
  std::optional<int64_t> drain_seconds;
  bool leader_worker_set = false;
  struct Router {
    bool enabled = false;
    std::string role, pool, engine_type = "vllm";
  } router;
  bool network_policy = true;
  std::string allow_from;           // JSON list
  std::optional<bool> pod_monitor;  // absent: where the cluster knows the kind
  PodSettings pod;
  std::string image;
};

// What the pods of one template had decided: a line for each group.
struct PlanOnRecord {
  std::string pod_template;
  std::vector<std::string> lines;
};

struct LastFailure {
  std::string time, pod, check, message;
};

// The status as it was last written, as far as the next one depends on it.
struct PreviousStatus {
  std::vector<Condition> conditions;
  std::string backends;
  PlanOnRecord plan;
  LastFailure last_failure;
  std::string kv_groups, platform, capacity;  // JSON
};

struct InferenceModel {
  std::string name, ns, uid;
  int64_t generation = 0;
  std::string model;        // spec.model as JSON with sorted keys
  std::string wishes_text;  // what Wishes was read from, as JSON with sorted keys
  Wishes wishes;
  int64_t replicas = 1;
  bool suspend = false;
  PreviousStatus status;
};

// `value` is a whole InferenceModel; anything else adds problems that begin with `path`.
InferenceModel ReadInferenceModel(JsonElement value, const std::string& path, Problems& problems);

// The wishes alone, from the text of an InferenceModel's wishes_text.
Wishes ReadWishes(JsonElement value, const std::string& path, Problems& problems);

}  // namespace ashlar::hooks
