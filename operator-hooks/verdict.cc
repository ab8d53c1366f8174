#include "operator-hooks/verdict.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/sha256.h"
#include "checkpoint/checkpoint.h"
#include "model/config.h"
#include "plan/plan.h"

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

struct Geometry {
  ModelConfig config;
  WeightFacts weights;
};

// Empty when the document does not say it: the checkpoint is not at hand here.
Result<std::optional<Geometry>> GeometryOf(const Spec& spec) {
  if (!spec.source.builtin.empty()) {
    Result<Checkpoint> checkpoint = OpenBuiltinCheckpoint(spec.source.builtin);
    if (!checkpoint) return checkpoint.problems();
    Result<ModelConfig> config = ReadModelConfig(*checkpoint);
    if (!config) return config.problems();
    return std::optional(Geometry{*std::move(config), {checkpoint->total_bytes()}});
  }
  if (!spec.source.config) return std::optional<Geometry>();
  Result<ModelConfig> config =
      ReadModelConfig(*spec.source.config, spec.origins.Place("source.config"));
  if (!config) return config.problems();
  WeightFacts weights{config->weight_bytes()};
  return std::optional(Geometry{*std::move(config), weights});
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

Verdict Refused(Verdict verdict, std::string reason, Problems problems) {
  verdict.reason = std::move(reason);
  verdict.problems = std::move(problems);
  verdict.message = Text(verdict.problems);
  return verdict;
}

Verdict Accepted(Verdict verdict, std::string reason, std::string message) {
  verdict.accepted = true;
  verdict.reason = std::move(reason);
  verdict.message = std::move(message);
  return verdict;
}

bool Offers(const NodeKind& kind, const DeviceWish& wish) {
  if (wish.resource.empty()) return true;
  auto found = kind.devices.find(wish.resource);
  return found != kind.devices.end() && found->second >= wish.per_pod;
}

Problem NothingOffered(const DeviceWish& wish, const std::vector<NodeKind>& nodes) {
  std::map<std::string, int64_t> most;
  for (const NodeKind& kind : nodes) {
    for (const auto& [resource, amount] : kind.devices)
      most[resource] = std::max(most[resource], amount);
  }
  std::string offered;
  for (const auto& [resource, amount] : most)
    offered += fmt::format("{}{} {}", offered.empty() ? "" : ", ", amount, resource);
  return {"spec.accelerator", fmt::format("no node offers {} {}", wish.per_pod, wish.resource),
          offered.empty() ? "nodes here offer no devices" : "a node offers at most " + offered,
          "ask for what a node offers, or add a node (and its device plugin)"};
}

// One line a kind of node: the first problem that keeps the model from it.
Verdict NoNode(Verdict verdict) {
  Problems problems;
  for (const NodePlan& plan : verdict.plans) {
    Problem problem = plan.problems.front();
    problem.place = plan.count > 0
                        ? fmt::format("{} ({} nodes): {}", plan.nodes, plan.count, problem.place)
                        : fmt::format("{}: {}", plan.nodes, problem.place);
    problems.push_back(std::move(problem));
  }
  return Refused(std::move(verdict), "NoNodeCanServe", std::move(problems));
}

Verdict JudgeNodes(Verdict verdict, const Geometry& geometry, const DeviceWish& wish,
                   const std::vector<NodeKind>& nodes, const Settings& settings) {
  bool unknown = wish.resource.empty() && wish.vendor != "cpu";  // claims choose the device
  for (const NodeKind& kind : nodes) {
    if (!Offers(kind, wish)) continue;
    std::optional<Platform> platform = unknown ? std::nullopt : PlatformOf(kind, wish.resource);
    if (platform) {
      verdict.plans.push_back(PlanFor(*verdict.spec, geometry, *platform, kind.Name(), kind.count));
    } else {
      unknown = true;
    }
  }
  for (const Platform& platform : settings.platforms)
    verdict.plans.push_back(PlanFor(*verdict.spec, geometry, platform, platform.name, 0));
  bool fits = std::any_of(verdict.plans.begin(), verdict.plans.end(),
                          [](const NodePlan& plan) { return plan.fits; });
  if (fits) return Accepted(std::move(verdict), "Accepted", "the model and its resource are valid");
  if (unknown || verdict.plans.empty()) {
    return Accepted(std::move(verdict), "NodesUnknown",
                    "valid; no node states enough for a plan, so the pods decide");
  }
  return NoNode(std::move(verdict));
}

Problems CheckSource(const ModelSource& source, const Settings& settings) {
  if (!source.downloaded() || !settings.download_image.empty()) return {};
  return {{"spec.source.uri", source.uri,
           "pvc://, file:// or an image: this installation has no downloader",
           "set hooks.downloadImage of the chart, or put the files on a claim"}};
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

Verdict Judge(const InferenceModel& model, const std::vector<NodeKind>& nodes,
              const Settings& settings) {
  Verdict verdict;
  Result<Spec> spec = ReadDocument(model.model);
  if (!spec) return Refused(std::move(verdict), "SpecInvalid", spec.problems());
  verdict.spec = *std::move(spec);
  Problems source = CheckSource(model.wishes.source, settings);
  if (!source.empty()) return Refused(std::move(verdict), "SourceUnsupported", std::move(source));
  DeviceWish wish = DevicesOf(model.wishes, *verdict.spec);
  bool offered = std::any_of(nodes.begin(), nodes.end(),
                             [&](const NodeKind& kind) { return Offers(kind, wish); });
  if (!nodes.empty() && !offered && settings.platforms.empty())
    return Refused(std::move(verdict), "NoNodeCanServe", {NothingOffered(wish, nodes)});
  Result<std::optional<Geometry>> geometry = GeometryOf(*verdict.spec);
  if (!geometry) return Refused(std::move(verdict), "SpecInvalid", InFields(geometry.problems()));
  if (!*geometry) {
    return Accepted(std::move(verdict), "GeometryUnknown",
                    "valid as far as the spec alone says; add source.config (ashlar plan "
                    "--emit-config writes it) and the plan is checked before a pod starts");
  }
  return JudgeNodes(std::move(verdict), **geometry, wish, nodes, settings);
}

std::shared_ptr<const Verdict> VerdictMemo::For(const InferenceModel& model,
                                                const std::vector<NodeKind>& nodes,
                                                const Settings& settings) {
  std::string key = model.model + '\n' + model.wishes_text;
  for (const NodeKind& kind : nodes) key += kind.Signature();
  key = Sha256Hex(key);
  {
    std::lock_guard lock(mutex_);
    auto known = verdicts_.find(key);
    if (known != verdicts_.end()) return known->second;
  }
  auto verdict = std::make_shared<const Verdict>(Judge(model, nodes, settings));
  std::lock_guard lock(mutex_);
  if (verdicts_.size() >= kEntries) verdicts_.clear();
  return verdicts_.emplace(key, std::move(verdict)).first->second;
}

}  // namespace ashlar::hooks
