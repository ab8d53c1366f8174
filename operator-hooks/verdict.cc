#include "operator-hooks/verdict.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/sha256.h"
#include "operator-hooks/device_wish.h"
#include "probe/profiles.h"

namespace ashlar::hooks {
namespace {

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

std::string NameOf(const NodePlan& plan) {
  return plan.count > 0 ? fmt::format("{} ({} nodes)", plan.nodes, plan.count) : plan.nodes;
}

// The first problem that keeps the model from each kind of node; what is the same for several is
// said once.
Verdict NoNode(Verdict verdict) {
  std::vector<std::pair<std::string, Problem>> refusals;  // kinds of nodes, and what they refuse
  for (const NodePlan& plan : verdict.plans) {
    const Problem& problem = plan.problems.front();
    auto same = std::find_if(refusals.begin(), refusals.end(),
                             [&](const auto& refusal) { return refusal.second == problem; });
    if (same == refusals.end()) {
      refusals.emplace_back(NameOf(plan), problem);
    } else {
      same->first += ", " + NameOf(plan);
    }
  }
  Problems problems;
  for (auto& [names, problem] : refusals) {
    problem.place = fmt::format("{}: {}", names, problem.place);
    problems.push_back(std::move(problem));
  }
  return Refused(std::move(verdict), "NoNodeCanServe", std::move(problems));
}

bool AnyFits(const Verdict& verdict) {
  return std::any_of(verdict.plans.begin(), verdict.plans.end(),
                     [](const NodePlan& plan) { return plan.fits; });
}

Verdict Valid(Verdict verdict) {
  return Accepted(std::move(verdict), "Accepted", "the model and its resource are valid");
}

Verdict GeometryUnknown(Verdict verdict) {
  return Accepted(std::move(verdict), "GeometryUnknown",
                  "valid as far as the spec alone says; add source.config (ashlar plan "
                  "--emit-config writes it) and the plan is checked before a pod starts");
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
  if (AnyFits(verdict)) return Valid(std::move(verdict));
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

// What the model says by itself. Its verdict is open (without a reason) unless it is refused.
struct Alone {
  Verdict verdict;
  std::optional<Geometry> geometry;
};

Alone JudgeAlone(const InferenceModel& model, const Settings& settings) {
  Alone alone;
  Result<Spec> spec = ReadDocument(model.model);
  if (!spec) return {Refused({}, "SpecInvalid", spec.problems()), std::nullopt};
  alone.verdict.spec = *std::move(spec);
  Problems source = CheckSource(model.wishes.source, settings);
  if (!source.empty()) {
    alone.verdict = Refused(std::move(alone.verdict), "SourceUnsupported", std::move(source));
    return alone;
  }
  Result<std::optional<Geometry>> geometry = GeometryOf(*alone.verdict.spec);
  if (!geometry) {
    alone.verdict = Refused(std::move(alone.verdict), "SpecInvalid", geometry.problems());
    return alone;
  }
  alone.geometry = *std::move(geometry);
  return alone;
}

// A profile as a machine that lacks nothing but what its devices cannot do.
Platform WithPlenty(Platform platform) {
  constexpr int64_t kPlenty = int64_t{1} << 44;
  for (DeviceInfo& device : platform.devices) device.memory_bytes = device.free_bytes = kPlenty;
  return platform;
}

}  // namespace

Verdict Judge(const InferenceModel& model, const std::vector<NodeKind>& nodes,
              const Settings& settings) {
  Alone alone = JudgeAlone(model, settings);
  Verdict& verdict = alone.verdict;
  if (!verdict.reason.empty()) return verdict;
  DeviceWish wish = DevicesOf(model.wishes, *verdict.spec);
  bool offered = std::any_of(nodes.begin(), nodes.end(),
                             [&](const NodeKind& kind) { return Offers(kind, wish); });
  if (!nodes.empty() && !offered && settings.platforms.empty())
    return Refused(std::move(verdict), "NoNodeCanServe", {NothingOffered(wish, nodes)});
  if (!alone.geometry) return GeometryUnknown(std::move(verdict));
  return JudgeNodes(std::move(verdict), *alone.geometry, wish, nodes, settings);
}

Verdict JudgeAnywhere(const InferenceModel& model, const Settings& settings) {
  Alone alone = JudgeAlone(model, settings);
  Verdict& verdict = alone.verdict;
  if (!verdict.reason.empty()) return verdict;
  if (!alone.geometry) return GeometryUnknown(std::move(verdict));
  const std::string_view wanted = PlatformName(DevicesOf(model.wishes, *verdict.spec).vendor);
  for (const std::string& name : PlatformProfiles()) {
    Platform platform = WithPlenty(*FindProfile(name));
    if (platform.devices.front().platform != wanted) continue;
    verdict.plans.push_back(PlanFor(*verdict.spec, *alone.geometry, platform, name, 0));
    if (verdict.plans.back().fits) return Valid(std::move(verdict));
  }
  return NoNode(std::move(verdict));
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
    metrics_.CountVerdict(known != verdicts_.end());
    if (known != verdicts_.end()) return known->second;
  }
  auto verdict = std::make_shared<const Verdict>(Judge(model, nodes, settings));
  std::lock_guard lock(mutex_);
  if (verdicts_.size() >= kEntries) verdicts_.clear();
  return verdicts_.emplace(key, std::move(verdict)).first->second;
}

}  // namespace ashlar::hooks
