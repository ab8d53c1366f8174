// The pod that serves a model: probes, drain, security, devices and files.
#pragma once

#include <string>

#include "operator-hooks/desired.h"

namespace ashlar::hooks {

struct PodTemplate {
  std::string text;  // JSON: metadata and spec
  std::string id;    // eight hex digits: equal for equal templates
};

// `routed`: with the labels by which routers find it; workers of a group have none.
PodTemplate BuildPodTemplate(const Desired& desired, bool routed = true);

// Seconds between asking a pod to end and killing it.
int64_t GraceSeconds(const Desired& desired);

}  // namespace ashlar::hooks
