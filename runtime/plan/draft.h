// The plan while it is made: what the steps of MakePlan hand to each other. Used by those steps
// alone.
#pragma once

#include <optional>

#include "plan/block_size.h"
#include "plan/plan.h"
#include "plan/select.h"

namespace ashlar {

// Inputs, what earlier steps found out, and every problem so far.
struct Draft {
  const Spec& spec;
  const Platform& platform;
  const ModelConfig& model;
  const WeightFacts& weights;

  Plan plan;
  std::optional<Selector> selector;  // once there is a device: the rows, and who may run them
  std::vector<GroupRows> rows;       // by KV group: the chosen rows, each once
  Problems problems;

  const std::vector<AttentionRow>& known_rows() const { return selector->catalogue().rows; }
  void AddProblems(const Problems& more) {
    problems.insert(problems.end(), more.begin(), more.end());
  }
};

// In the order in which they run.
void ReadRequest(Draft& draft);        // the spec as far as it needs no device
void CheckLayers(Draft& draft);        // kinds and sizes of the model's layers
void PickDevice(Draft& draft);         // and its threads
void CheckQuantization(Draft& draft);  // whether the device has such products
void MakeGroups(Draft& draft);         // layers -> KV groups -> attention groups
void SelectRows(Draft& draft);         // one row for each attention group that needs one
void SolveBlocks(Draft& draft);        // one manager block, a kernel block for each KV group
void SizePages(Draft& draft);          // by the spec's arithmetic alone
void PickLayout(Draft& draft);         // one for all groups
void SizePools(Draft& draft);          // blocks of each group, context, budget
void PlacePools(Draft& draft);         // offsets in the arena
void CompareShapes(Draft& draft);      // the rows' own declarations with all of the above
void HashPlan(Draft& draft);

// Of all tensors, as the plan keeps them.
int64_t WeightBytes(const Draft& draft);
// Rows of all groups.
std::vector<const AttentionRow*> AllRows(const std::vector<GroupRows>& groups);

}  // namespace ashlar
