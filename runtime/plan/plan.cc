#include "plan/plan.h"

#include "model/forward.h"
#include "plan/draft.h"
#include "plan/hash.h"
#include "plan/memory.h"
#include "plan/shapes.h"

namespace ashlar {

void SizePools(Draft& draft) {
  const DeviceInfo& device = draft.selector->target().device;
  // Plugins on the host compute in float32, those on GPUs in bfloat16.
  DType activations = device.memory_space == "host" ? DType::kF32 : DType::kBF16;
  int64_t workspace = ForwardWorkspaceBytes(draft.model, activations, draft.plan.batch_tokens,
                                            draft.plan.max_sequences);
  draft.problems = SizeMemory(draft.plan, draft.spec, device, WeightBytes(draft), workspace);
}

void CompareShapes(Draft& draft) {
  draft.problems = CheckDeclaredShapes(draft.plan, draft.known_rows());
}

void HashPlan(Draft& draft) { draft.plan.hash = PlanHash(draft.plan); }

namespace {

// When to stop after a step: kGoOn leaves problems for later steps to add to.
enum class After { kGoOn, kStopIfNew, kStopIfAny };

struct Step {
  std::string_view check;  // readiness check that its problems belong to
  void (*run)(Draft&);
  After after;
};

// One a line, in this order: groups, backends, block size, layout, memory, shapes.
constexpr Step kSteps[] = {
    {"source", ReadRequest, After::kGoOn},          //
    {"source", CheckLayers, After::kStopIfNew},     // nothing can be grouped without them
    {"platform", PickDevice, After::kStopIfNew},    // nothing can be judged without a device
    {"platform", CheckQuantization, After::kGoOn},  //
    {"backends", MakeGroups, After::kGoOn},         //
    {"backends", SelectRows, After::kStopIfAny},    // problems of all groups, then stop
    {"blocks", SolveBlocks, After::kStopIfAny},     //
    {"blocks", SizePages, After::kStopIfAny},       //
    {"blocks", PickLayout, After::kStopIfAny},      //
    {"blocks", SizePools, After::kStopIfAny},       //
    {"blocks", PlacePools, After::kStopIfAny},      //
    {"shapes", CompareShapes, After::kStopIfAny},   // last: it looks at everything above
    {"shapes", HashPlan, After::kStopIfAny},        //
};

}  // namespace

PlanAttempt TryPlan(const Spec& spec, const Platform& platform, const ModelConfig& model,
                    const WeightFacts& weights) {
  Draft draft{spec, platform, model, weights, {}, {}, {}, {}};
  PlanAttempt attempt;
  for (const Step& step : kSteps) {
    size_t before = draft.problems.size();
    step.run(draft);
    bool added = draft.problems.size() > before;
    if (added && attempt.check.empty()) attempt.check = step.check;
    if (step.after == After::kStopIfNew && added) break;
    if (step.after == After::kStopIfAny && !draft.problems.empty()) break;
  }
  if (draft.problems.empty()) {
    attempt.plan = std::move(draft.plan);
  } else {
    attempt.problems = std::move(draft.problems);
  }
  return attempt;
}

Result<Plan> MakePlan(const Spec& spec, const Platform& platform, const ModelConfig& model,
                      const WeightFacts& weights) {
  PlanAttempt attempt = TryPlan(spec, platform, model, weights);
  if (attempt.plan) return std::move(*attempt.plan);
  return std::move(attempt.problems);
}

}  // namespace ashlar
