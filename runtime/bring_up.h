// The line from a spec to an engine, written out: source, probe, plan, weights, kv, engine.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/engine.h"
#include "file_fault.h"
#include "model_text.h"
#include "plan/plan.h"
#include "serve/checks.h"
#include "serve/server.h"
#include "source.h"
#include "spec/spec.h"

namespace ashlar {

struct Rejection {
  ReadyCheck check;
  Problems problems;
};

// Everything that a running model holds, in the order in which it is made.
struct Running {
  Spec spec;
  ModelSource source;
  std::unique_ptr<FileFaultReport> file_faults;
  Plan plan;
  std::unique_ptr<Device> device, reference;  // what runs the model, and the truth
  ModelText text;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<EngineGenerator> generator;
};

// Fills `run` from its spec, telling `api` and `readiness` of each stage. Returns at the first
// check that fails. `plugin_directory`: empty for the one beside the executable.
std::optional<Rejection> BringUp(Running& run, const std::string& plugin_directory, ApiServer& api,
                                 Readiness& readiness);

}  // namespace ashlar
