// The document of /status: what was decided, what was checked, how it runs. Also what a rejected
// start leaves behind.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "engine/engine.h"
#include "engine/self_test.h"
#include "serve/checks.h"

namespace ashlar {

struct StatusSources {
  Readiness::Snapshot readiness;
  std::string model_name, digest;
  Json plan;  // null before there is one
  std::vector<SelfTestResult> self_test;
  const EngineStats* engine = nullptr;  // null before there is one
};

Json StatusDocument(const StatusSources& sources);

}  // namespace ashlar
