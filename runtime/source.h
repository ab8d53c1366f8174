// From a spec's `source` to what planning needs: the checkpoint and the model's geometry.
#pragma once

#include <optional>

#include "checkpoint/checkpoint.h"
#include "model/config.h"
#include "plan/plan.h"
#include "spec/spec.h"

namespace ashlar {

struct ModelSource {
  std::optional<Checkpoint> checkpoint;  // absent when only `source.config` was read
  ModelConfig config;
  WeightFacts weights;
};

// Opens source.path or source.builtin. When the path cannot be opened and `source.config` is given
// and `plan_only`, plans from the inline geometry. Both given: a difference in geometry is refused.
Result<ModelSource> OpenSource(const Spec& spec, bool plan_only);

// The served name: spec.name, else the stem of the source.
std::string ServedName(const Spec& spec);

}  // namespace ashlar
