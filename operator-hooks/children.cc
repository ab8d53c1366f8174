#include "operator-hooks/children.h"

#include <algorithm>
#include <array>
#include <limits>

#include "operator-hooks/names.h"

namespace ashlar::hooks {
namespace {

constexpr std::array kKinds = {kConfigMaps,       kServices,      kClaims,      kDeployments,
                               kLeaderWorkerSets, kJobs,          kPodMonitors, kAutoscalers,
                               kScaledObjects,    kClaimTemplates};

int64_t Count(const ObjectReader& reader, std::string_view key) {
  return reader.Integer(key, 0, std::numeric_limits<int64_t>::max(), 0);
}

Workload ReadWorkload(const ObjectReader& object) {
  Workload workload;
  workload.present = true;
  ObjectReader metadata = object.Object("metadata");
  workload.generation = Count(metadata, "generation");
  auto annotations = metadata.TextMap("annotations");
  workload.digest = annotations[std::string(kDigestKey)];
  workload.pod_template = annotations[std::string(kTemplateKey)];
  workload.wishes_text = annotations[std::string(kWishesKey)];
  ObjectReader spec = object.Object("spec");
  workload.wanted = Count(spec, "replicas");
  ObjectReader rolling = spec.Object("rolloutStrategy").Object("rollingUpdateConfiguration");
  workload.paused = spec.Flag("paused", false) || Count(rolling, "partition") > 0;
  ObjectReader status = object.Object("status");
  workload.observed_generation = Count(status, "observedGeneration");
  workload.replicas = Count(status, "replicas");
  workload.ready = Count(status, "readyReplicas");
  workload.updated = Count(status, "updatedReplicas");
  for (const ObjectReader& condition : status.Objects("conditions")) {
    if (condition.Text("reason") == "ProgressDeadlineExceeded") workload.deadline_exceeded = true;
  }
  return workload;
}

DownloadState ReadJob(const ObjectReader& object) {
  DownloadState state;
  for (const ObjectReader& condition : object.Object("status").Objects("conditions")) {
    if (condition.Text("status") != "True") continue;
    if (condition.Text("type") == "Complete") state.succeeded = true;
    if (condition.Text("type") == "Failed") {
      state.failed = true;
      state.message = condition.Text("message");
    }
  }
  return state;
}

// The object of this name, whatever stands before it in the key.
template <class Read, class State>
void ReadNamed(const ObjectReader& children, std::string_view kind, const std::string& name,
               Read read, State& state) {
  for (const auto& [key, object] : children.Members(kind)) {
    if (object.Object("metadata").Text("name") == name) state = read(object);
  }
}

}  // namespace

const DocumentMap* Children::Find(std::string_view digest) const {
  auto found = std::find_if(documents.begin(), documents.end(),
                            [&](const DocumentMap& map) { return map.digest == digest; });
  return found == documents.end() ? nullptr : &*found;
}

Children ReadChildren(const ObjectReader& parent, const std::string& name) {
  ObjectReader objects = parent.Object("children");
  Children children;
  for (std::string_view kind : kKinds) {
    if (objects.Has(kind)) children.kinds.emplace(kind);
  }
  ReadNamed(objects, kDeployments, name, ReadWorkload, children.workload);
  if (!children.workload.present)
    ReadNamed(objects, kLeaderWorkerSets, name, ReadWorkload, children.workload);
  for (const auto& [key, object] : objects.Members(kJobs))
    children.downloads[object.Object("metadata").Text("name")] = ReadJob(object);
  for (const auto& [key, object] : objects.Members(kConfigMaps)) {
    auto annotations = object.Object("metadata").TextMap("annotations");
    const std::string& digest = annotations[std::string(kDigestKey)];
    std::string document = object.Object("data").Text(kDocumentFile);
    if (!digest.empty() && !document.empty()) children.documents.push_back({digest, document});
  }
  std::sort(children.documents.begin(), children.documents.end(),
            [](const DocumentMap& a, const DocumentMap& b) { return a.digest < b.digest; });
  return children;
}

Children NoChildren() {
  Children children;
  for (std::string_view kind : kKinds) children.kinds.emplace(kind);
  return children;
}

}  // namespace ashlar::hooks
