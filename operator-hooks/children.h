// What is there of a model: the children that an earlier sync made, as far as the next one depends
// on them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "operator-hooks/json_reader.h"

namespace ashlar::hooks {

// Keys of Metacontroller's maps of objects.
inline constexpr std::string_view kConfigMaps = "ConfigMap.v1";
inline constexpr std::string_view kServices = "Service.v1";
inline constexpr std::string_view kClaims = "PersistentVolumeClaim.v1";
inline constexpr std::string_view kDeployments = "Deployment.apps/v1";
inline constexpr std::string_view kLeaderWorkerSets = "LeaderWorkerSet.leaderworkerset.x-k8s.io/v1";
inline constexpr std::string_view kJobs = "Job.batch/v1";
inline constexpr std::string_view kPodMonitors = "PodMonitor.monitoring.coreos.com/v1";
inline constexpr std::string_view kAutoscalers = "HorizontalPodAutoscaler.autoscaling/v2";
inline constexpr std::string_view kScaledObjects = "ScaledObject.keda.sh/v1alpha1";
inline constexpr std::string_view kClaimTemplates = "ResourceClaimTemplate.resource.k8s.io/v1";
inline constexpr std::string_view kNodes = "Node.v1";

// The Deployment or LeaderWorkerSet.
struct Workload {
  bool present = false;
  int64_t generation = 0, observed_generation = 0;
  int64_t wanted = 0, replicas = 0, ready = 0, updated = 0;
  bool paused = false, deadline_exceeded = false;
  // From our annotations: digest of the model, identity of the pod template, and the wishes that it
  // was made from.
  std::string digest, pod_template, wishes_text;
};

// One of the immutable ConfigMaps that hold a model document.
struct DocumentMap {
  std::string digest, document;
};

struct DownloadState {
  bool succeeded = false, failed = false;
  std::string message;
};

struct Children {
  Workload workload;
  std::vector<DocumentMap> documents;              // by digest
  std::map<std::string, DownloadState> downloads;  // by the Job's name
  std::set<std::string, std::less<>> kinds;  // that the controller manages, so that may be made

  bool Knows(std::string_view kind) const { return kinds.contains(kind); }
  const DocumentMap* Find(std::string_view digest) const;
};

// `parent` is the object that has a member "children"; `name` is the model's.
Children ReadChildren(const ObjectReader& parent, const std::string& name);

// As if nothing were there yet, in a cluster that knows every kind.
Children NoChildren();

}  // namespace ashlar::hooks
