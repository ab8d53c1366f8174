// Names, labels and annotations of what the hooks make.
#pragma once

#include <string>
#include <string_view>

#include "base/sha256.h"

namespace ashlar::hooks {

inline constexpr std::string_view kModelLabel = "ashlar.dev/model";
inline constexpr std::string_view kPoolLabel = "ashlar.dev/pool";
// Set by LeaderWorkerSet; only the leader, 0, answers requests.
inline constexpr std::string_view kWorkerIndexLabel = "leaderworkerset.sigs.k8s.io/worker-index";
inline constexpr std::string_view kDigestKey = "ashlar.dev/model-digest";
inline constexpr std::string_view kTemplateKey = "ashlar.dev/pod-template";
inline constexpr std::string_view kWishesKey = "ashlar.dev/accepted-spec";
inline constexpr std::string_view kDocumentFile = "model.yaml";
inline constexpr std::string_view kContainer = "ashlar";

// Every pod listens here, whatever port the model's document names: that one is the Service's.
inline constexpr int kPodPort = 8000;

// A model's name has at most 50 letters, so that each of these fits the 63 of a DNS label.
inline std::string PodsServiceName(const std::string& name) { return name + "-pods"; }
// `what` is what is downloaded, and how.
inline std::string DownloadName(const std::string& name, std::string_view what) {
  return name + "-get-" + Sha256Hex(what).substr(0, 6);
}
inline std::string ClaimName(const std::string& name) { return name + "-models"; }
// `devices` is what is claimed: an API server changes no ResourceClaimTemplate, so that another
// wish is another object.
inline std::string ClaimTemplateName(const std::string& name, std::string_view devices) {
  return name + "-" + Sha256Hex(devices).substr(0, 6);
}
inline std::string ConfigMapName(const std::string& name, std::string_view digest) {
  return name + "-" + std::string(digest.substr(0, 10));
}
// The host name of every pod of one template: what a pod reports as its machine says which template
// it is of.
inline std::string PodHostname(const std::string& name, std::string_view pod_template) {
  return name + "-" + std::string(pod_template);
}

}  // namespace ashlar::hooks
