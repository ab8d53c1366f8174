// What is to be there of a model: the input of every builder, and the builders.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "operator-hooks/device_wish.h"
#include "operator-hooks/inference_model.h"
#include "operator-hooks/json_writer.h"
#include "operator-hooks/settings.h"
#include "spec/spec.h"

namespace ashlar::hooks {

struct Desired {
  std::string name, ns;
  const Wishes& wishes;
  const std::string& wishes_text;
  const Spec& spec;
  const Settings& settings;
  DeviceWish devices;
  int64_t replicas = 1;
  bool paused = false;  // a rollout is held
};

// The children, each as JSON text. A builder writes its object whatever the cluster knows; sync.cc
// decides which are wanted.
std::string BuildConfigMap(const Desired& desired);
std::string BuildDeployment(const Desired& desired);
std::string BuildLeaderWorkerSet(const Desired& desired);
std::string BuildService(const Desired& desired);
std::string BuildPodsService(const Desired& desired);
std::string BuildDisruptionBudget(const Desired& desired);
std::string BuildNetworkPolicy(const Desired& desired);
std::string BuildPodMonitor(const Desired& desired);
std::string BuildAutoscaler(const Desired& desired);
std::string BuildScaledObject(const Desired& desired);
std::string BuildClaim(const Desired& desired);
std::string BuildClaimTemplate(const Desired& desired);
std::string ClaimTemplateNameOf(const Desired& desired);
std::string BuildDownloadJob(const Desired& desired);
std::string DownloadNameOf(const Desired& desired);

// A ConfigMap made earlier, as it was made.
std::string BuildConfigMap(const std::string& name, const std::string& ns,
                           const std::string& digest, const std::string& document);

// Parts that several builders share.

// apiVersion, kind and metadata with name, namespace, labels and what `more` adds.
template <class More>
void WriteHead(JsonWriter& out, const Desired& desired, std::string_view api_version,
               std::string_view kind, std::string_view name, More&& more);
// The labels that every child carries; pods carry more.
void WriteLabels(JsonWriter& out, const std::string& name);
// {"matchLabels": ...} of the model's pods.
void WriteSelector(JsonWriter& out, std::string_view key, const std::string& name);
void WriteTextMap(JsonWriter& out, const std::map<std::string, std::string>& texts);

template <class More>
void WriteHead(JsonWriter& out, const Desired& desired, std::string_view api_version,
               std::string_view kind, std::string_view name, More&& more) {
  out.Add("apiVersion", api_version);
  out.Add("kind", kind);
  out.Object("metadata", [&] {
    out.Add("name", name);
    out.AddIf("namespace", desired.ns);
    out.Object("labels", [&] { WriteLabels(out, desired.name); });
    more();
  });
}

inline void WriteHead(JsonWriter& out, const Desired& desired, std::string_view api_version,
                      std::string_view kind, std::string_view name) {
  WriteHead(out, desired, api_version, kind, name, [] {});
}

}  // namespace ashlar::hooks
