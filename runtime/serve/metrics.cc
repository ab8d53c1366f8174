#include "serve/metrics.h"

#include <algorithm>

#include "base/dtype.h"
#include "serve/metric_page.h"
#include "serve/version.h"

namespace ashlar {
namespace {

std::vector<double> SecondBounds() {
  return {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300};
}
std::vector<double> TokenBounds() { return {1, 4, 16, 64, 256, 1024, 4096, 16384, 65536}; }

constexpr std::array<std::string_view, 4> kClasses = {"2xx", "4xx", "499", "5xx"};
constexpr std::array<std::string_view, 4> kFinishNames = {"stop", "length", "cancelled", "error"};
constexpr std::array<std::string_view, kApiRoutes> kRouteNames = {
    "/v1/completions", "/v1/chat/completions", "/v1/models", "unrouted"};

// The block size at each stage that metrics name.
void AddBlockTokens(const KvGroup& group, MetricPage& page) {
  int requested = 0;
  for (const BlockStep& step : group.block_steps) {
    if (step.stage == "requested") requested = step.tokens;
  }
  page.Add(MetricId::kGroupBlockTokens, {group.name, "requested"}, requested);
  page.Add(MetricId::kGroupBlockTokens, {group.name, "effective"}, group.block_tokens);
  page.Add(MetricId::kGroupBlockTokens, {group.name, "kernel"}, group.kernel_block_tokens);
}

void AddSelection(const Plan& plan, const KvGroup& group, MetricPage& page) {
  for (const AttentionGroup& attention : group.attention) {
    std::string attn = std::to_string(attention.index);
    page.Add(MetricId::kBackendInfo,
             {plan.model_name, group.name, attn, std::string(Name(group.kind)),
              std::string(attention.backend()), attention.requested, attention.reason,
              std::string(Info(group.dtype).name), std::to_string(attention.layer.head_dim),
              std::to_string(group.block_tokens), std::to_string(group.kernel_block_tokens),
              std::string(Name(plan.layout))},
             1);
    for (const Candidate& candidate : attention.candidates) {
      for (RefusalReason reason : candidate.refusals) {
        page.Add(MetricId::kBackendRejections,
                 {group.name, attn, candidate.row, std::string(Label(reason))}, 1);
      }
    }
  }
}

void AddGroup(const Plan& plan, const KvGroup& group, const EngineStats::Group& stats,
              MetricPage& page) {
  AddSelection(plan, group, page);
  AddBlockTokens(group, page);
  std::vector<std::string> labels = {group.name, std::string(Name(group.kind)), "device"};
  // Until the engine has its pools, the plan's own count stands; the null block is nobody's.
  double planned = static_cast<double>(std::max<int64_t>(group.blocks - 1, 0));
  double blocks = stats.blocks > 0 ? static_cast<double>(stats.blocks) : planned;
  double free = stats.blocks > 0 ? static_cast<double>(stats.free) : planned;
  page.Add(
      MetricId::kGroupBytes, labels,
      blocks * static_cast<double>(group.page_bytes) * static_cast<double>(group.layers.size()));
  page.Add(MetricId::kGroupBlocks, labels, blocks);
  page.Add(MetricId::kGroupBlocksPlanned, labels, planned);
  page.Add(MetricId::kGroupBlocksFree, labels, free);
  page.Add(MetricId::kGroupBlocksUsed, labels, blocks - free);
  page.Add(MetricId::kGroupBlocksCached, labels, static_cast<double>(stats.cached));
  page.Add(MetricId::kGroupEvictions, {group.name}, static_cast<double>(stats.evictions));
  page.Add(MetricId::kGroupPrefixQueries, {group.name}, static_cast<double>(stats.query_tokens));
  page.Add(MetricId::kGroupPrefixHits, {group.name}, static_cast<double>(stats.hit_tokens));
}

void AddPlan(const Plan& plan, const EngineStats& stats, MetricPage& page) {
  page.Add(MetricId::kPlatformInfo, {plan.platform, plan.platform_name, plan.product}, 1);
  page.Add(MetricId::kCacheBlockTokens, {}, plan.cache_block_tokens);
  page.Add(MetricId::kHashBlockTokens, {}, plan.hash_block_tokens);
  page.Add(MetricId::kSchedulerBlockTokens, {}, plan.scheduler_block_tokens);
  for (size_t i = 0; i < plan.groups.size(); ++i) {
    AddGroup(plan, plan.groups[i], i < stats.groups.size() ? stats.groups[i] : EngineStats::Group{},
             page);
  }
}

void AddReadiness(const Readiness::Snapshot& readiness, int64_t inflight, MetricPage& page) {
  bool draining = readiness.phase == Phase::kDraining;
  for (const CheckInfo& info : kChecks) {
    size_t index = static_cast<size_t>(info.check);
    page.Add(MetricId::kReady, {std::string(info.name)}, readiness.state[index] == 1 ? 1 : 0);
    page.Add(MetricId::kReadinessFailures, {std::string(info.name), std::string(info.reason)},
             static_cast<double>(readiness.failures[index]));
  }
  page.Add(MetricId::kDraining, {}, draining ? 1 : 0);
  page.Add(MetricId::kDrainInflight, {}, draining ? static_cast<double>(inflight) : 0);
}

void AddEngine(const EngineStats& stats, MetricPage& page) {
  auto add = [&page](MetricId id, int64_t value) { page.Add(id, {}, static_cast<double>(value)); };
  page.Add(MetricId::kHeartbeat, {}, stats.last_step_unix_seconds);
  add(MetricId::kRequestsRunning, stats.running);
  add(MetricId::kRequestsWaiting, stats.waiting);
  add(MetricId::kWaitingTokens, stats.waiting_tokens);
  add(MetricId::kPromptTokens, stats.prompt_tokens);
  add(MetricId::kCachedPromptTokens, stats.cached_prompt_tokens);
  add(MetricId::kGeneratedTokens, stats.generated_tokens);
  add(MetricId::kPreemptions, stats.preemptions);
  add(MetricId::kSteps, stats.steps);
  for (size_t i = 0; i < kFinishNames.size(); ++i) {
    page.Add(MetricId::kRequestsFinished, {std::string(kFinishNames[i])},
             static_cast<double>(stats.finished[i]));
  }
}

// Names that routers and dashboards made for vLLM ask for.
void AddAliases(const std::string& model, const Plan* plan, const EngineStats& stats,
                MetricPage& page) {
  std::vector<std::string> labels = {model, "0"};
  double usage = 0;
  for (const EngineStats::Group& group : stats.groups) {
    if (group.blocks <= 0) continue;
    usage = std::max(
        usage, static_cast<double>(group.blocks - group.free) / static_cast<double>(group.blocks));
  }
  page.Add(MetricId::kVllmRunning, labels, static_cast<double>(stats.running));
  page.Add(MetricId::kVllmWaiting, labels, static_cast<double>(stats.waiting));
  page.Add(MetricId::kVllmUsage, labels, usage);
  page.Add(MetricId::kVllmPrefixQueries, labels, static_cast<double>(stats.prefix_query_tokens));
  page.Add(MetricId::kVllmPrefixHits, labels, static_cast<double>(stats.prefix_hit_tokens));
  if (plan == nullptr || plan->groups.empty()) return;
  page.Add(
      MetricId::kVllmCacheConfig,
      {model, "0", std::to_string(plan->groups[0].block_tokens),
       std::to_string(stats.groups.empty() ? plan->groups[0].blocks - 1 : stats.groups[0].blocks)},
      1);
}

size_t ClassOf(int status) {
  if (status == 499) return 2;
  return status >= 500 ? 3 : (status >= 400 ? 1 : 0);
}

}  // namespace

std::string_view Name(ApiRoute route) { return kRouteNames[static_cast<size_t>(route)]; }

Metrics::Metrics()
    : completion_seconds_(SecondBounds()),
      chat_seconds_(SecondBounds()),
      first_token_(SecondBounds()),
      token_gap_(SecondBounds()),
      prompt_tokens_(TokenBounds()),
      generated_tokens_(TokenBounds()) {}

void Metrics::SetModel(std::string name, std::string digest) {
  std::lock_guard lock(mutex_);
  identity_.model_name = std::move(name);
  identity_.model_digest = digest.substr(0, 12);
}

void Metrics::SetPlan(const Plan& plan) {
  std::lock_guard lock(mutex_);
  identity_.plan = std::make_shared<const Plan>(plan);
}

void Metrics::SetSelfTest(std::vector<SelfTestResult> results) {
  std::lock_guard lock(mutex_);
  identity_.self_test = std::move(results);
}

void Metrics::SetStartupPhase(std::string phase, double seconds) {
  std::lock_guard lock(mutex_);
  for (auto& [name, value] : identity_.phases) {
    if (name == phase) {
      value = seconds;
      return;
    }
  }
  identity_.phases.emplace_back(std::move(phase), seconds);
}

void Metrics::CountRequest(ApiRoute route, int status) {
  ++requests_[static_cast<size_t>(route)][ClassOf(status)];
}

void Metrics::Observe(ApiRoute route, const GenerationReport& report, double seconds) {
  (route == ApiRoute::kChat ? chat_seconds_ : completion_seconds_).Observe(seconds);
  if (report.first_token_seconds) first_token_.Observe(*report.first_token_seconds);
  for (double gap : report.token_gaps_seconds) token_gap_.Observe(gap);
  if (report.usage.prompt_tokens > 0) {
    prompt_tokens_.Observe(static_cast<double>(report.usage.prompt_tokens));
    generated_tokens_.Observe(static_cast<double>(report.usage.completion_tokens));
  }
}

std::string Metrics::Render(const Sources& sources) const {
  Identity identity;
  {
    std::lock_guard lock(mutex_);
    identity = identity_;
  }
  MetricPage page;
  page.Add(MetricId::kBuildInfo, {kVersion, __VERSION__}, 1);
  const Plan* plan = identity.plan.get();
  page.Add(MetricId::kModelInfo,
           {identity.model_name, identity.model_digest, plan ? plan->model.architecture : "",
            plan ? std::string(Info(plan->model.weight_dtype).name) : ""},
           1);
  AddReadiness(sources.readiness, sources.inflight, page);
  for (const auto& [phase, seconds] : identity.phases) {
    page.Add(MetricId::kStartupPhase, {phase}, seconds);
  }
  AddEngine(sources.engine, page);
  AddAliases(identity.model_name, plan, sources.engine, page);
  for (size_t route = 0; route < requests_.size(); ++route) {
    for (size_t i = 0; i < kClasses.size(); ++i) {
      page.Add(MetricId::kHttpRequests, {std::string(kRouteNames[route]), std::string(kClasses[i])},
               static_cast<double>(requests_[route][i].load()));
    }
  }
  static const HttpCounters kNone;
  const HttpCounters& http = sources.http != nullptr ? *sources.http : kNone;
  page.Add(MetricId::kHttpConnectionsOpen, {}, static_cast<double>(http.open.load()));
  page.Add(MetricId::kHttpConnections, {"accepted"}, static_cast<double>(http.accepted.load()));
  page.Add(MetricId::kHttpConnections, {"refused"}, static_cast<double>(http.refused.load()));
  page.Add(MetricId::kHttpConnections, {"timed_out"}, static_cast<double>(http.timed_out.load()));
  page.Add(MetricId::kHttpConnections, {"malformed"}, static_cast<double>(http.malformed.load()));
  page.Add(MetricId::kRequestSeconds, {std::string(kRouteNames[0])}, completion_seconds_.values());
  page.Add(MetricId::kRequestSeconds, {std::string(kRouteNames[1])}, chat_seconds_.values());
  page.Add(MetricId::kFirstTokenSeconds, {}, first_token_.values());
  page.Add(MetricId::kTokenGapSeconds, {}, token_gap_.values());
  page.Add(MetricId::kRequestPromptTokens, {}, prompt_tokens_.values());
  page.Add(MetricId::kRequestGeneratedTokens, {}, generated_tokens_.values());
  for (const SelfTestResult& result : identity.self_test) {
    std::vector<std::string> labels = {result.group, std::to_string(result.attn), result.row};
    page.Add(MetricId::kSelfTestError, labels, result.error);
    page.Add(MetricId::kSelfTestTolerance, labels, result.tolerance);
  }
  // Last, for it alone grows with the model: what everybody watches is never the part left out.
  if (plan != nullptr) AddPlan(*plan, sources.engine, page);
  return page.Text();
}

}  // namespace ashlar
