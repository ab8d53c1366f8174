#include "operator-hooks/node_plan.h"

#include <fmt/format.h>

#include "checkpoint/checkpoint.h"
#include "model/config.h"
#include "operator-hooks/inference_model.h"

namespace ashlar::hooks {
namespace {

// Stands for a file name in messages, and is taken out again: a custom resource has fields, no
// lines.
constexpr std::string_view kDocument = "custom-resource";

Problems InFields(Problems problems) {
  for (Problem& problem : problems) {
    size_t start = problem.place.find(fmt::format(" ({}", kDocument));
    if (start != problem.place.npos) problem.place.resize(start);
    if (problem.place.starts_with(kDocument)) problem.place = "spec.model";
  }
  return problems;
}

std::string BackendsOf(const Plan& plan) {
  std::string text;
  for (const KvGroup& group : plan.groups) {
    for (const AttentionGroup& attention : group.attention) {
      std::string_view row = attention.backend();
      if (!row.empty()) text += fmt::format("{}{}={}", text.empty() ? "" : ",", group.name, row);
    }
  }
  return text;
}

}  // namespace

Result<Spec> ReadDocument(const std::string& document) {
  // A document by itself is wrapped so that messages begin with the field's path in the resource.
  std::string manifest =
      fmt::format(R"({{"apiVersion":"{}","kind":"InferenceModel","spec":{{"model":{}}}}})",
                  kGroupVersion, document);
  Result<Spec> spec = LoadSpec(manifest, std::string(kDocument));
  if (!spec) return InFields(spec.problems());
  return spec;
}

Result<std::optional<Geometry>> GeometryOf(const Spec& spec) {
  if (!spec.source.builtin.empty()) {
    Result<Checkpoint> checkpoint = OpenBuiltinCheckpoint(spec.source.builtin);
    if (!checkpoint) return checkpoint.problems();
    Result<ModelConfig> config = ReadModelConfig(*checkpoint);
    if (!config) return InFields(config.problems());
    return std::optional(Geometry{*std::move(config), {checkpoint->total_bytes()}});
  }
  if (!spec.source.config) return std::optional<Geometry>();
  Result<ModelConfig> config =
      ReadModelConfig(*spec.source.config, spec.origins.Place("source.config"));
  if (!config) return InFields(config.problems());
  WeightFacts weights{config->weight_bytes()};
  return std::optional(Geometry{*std::move(config), weights});
}

NodePlan PlanFor(const Spec& spec, const Geometry& geometry, const Platform& platform,
                 std::string name, int count) {
  NodePlan plan;
  plan.nodes = std::move(name);
  plan.count = count;
  PlanAttempt attempt = TryPlan(spec, platform, geometry.config, geometry.weights);
  plan.problems = attempt.problems;
  if (attempt.plan) {
    plan.backends = BackendsOf(*attempt.plan);
    plan.problems = CheckServable(*attempt.plan, platform.rows);
  }
  plan.problems = InFields(std::move(plan.problems));
  plan.fits = plan.problems.empty();
  return plan;
}

}  // namespace ashlar::hooks
