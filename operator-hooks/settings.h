// What the cluster's operator decides once for all models: the flags of `ashlar-hooks`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "probe/platform.h"

namespace ashlar::hooks {

struct Settings {
  // Runtime images by vendor.
  std::string image_cpu = "ashlar/runtime-cpu:0.1.0";
  std::string image_nvidia = "ashlar/runtime-cuda:0.1.0";
  std::string image_amd = "ashlar/runtime-rocm:0.1.0";
  // Called as `IMAGE <uri> /models`; exits with 0 once /models holds the files. "": hf:// and s3://
  // sources are refused.
  std::string download_image;
  // Namespaces that reach every model's port: of Prometheus, and of these hooks. "": none.
  std::string monitoring_namespace, own_namespace;
  std::string prometheus_url;  // for KEDA
  std::string cluster_domain = "cluster.local";
  std::vector<int64_t> device_groups;  // supplemental groups of pods with AMD devices
  std::vector<Platform> platforms;     // captured ones, beside the nodes that are there
};

}  // namespace ashlar::hooks
