// What the planner expects of a model on one kind of node.
#pragma once

#include <optional>
#include <string>

#include "base/problem.h"
#include "base/result.h"
#include "plan/plan.h"
#include "probe/platform.h"
#include "spec/spec.h"

namespace ashlar::hooks {

// The ModelSpec in a document, as the planner takes it; its problems name fields of the custom
// resource.
Result<Spec> ReadDocument(const std::string& document);

// What planning asks of a checkpoint.
struct Geometry {
  ModelConfig config;
  WeightFacts weights;
};

// Of a spec that ReadDocument has read. Empty when it does not say it: the checkpoint is not at
// hand here.
Result<std::optional<Geometry>> GeometryOf(const Spec& spec);

struct NodePlan {
  std::string nodes;  // the kind's name
  int count = 0;      // nodes of it; 0: a platform known by name
  bool fits = false;
  std::string backends;  // "full_attention=CPU_PAGED"
  Problems problems;
};

NodePlan PlanFor(const Spec& spec, const Geometry& geometry, const Platform& platform,
                 std::string name, int count);

}  // namespace ashlar::hooks
