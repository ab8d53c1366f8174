#include "serve/status.h"

#include "serve/version.h"

namespace ashlar {
namespace {

Json ProblemJson(const Problem& problem) {
  return {{"place", problem.place},
          {"found", problem.found},
          {"allowed", problem.allowed},
          {"next", problem.next},
          {"message", problem.Text()}};
}

Json ChecksJson(const Readiness::Snapshot& readiness) {
  constexpr const char* kStates[] = {"pending", "passed", "failed"};
  Json list = Json::array();
  for (const CheckInfo& info : kChecks) {
    size_t index = static_cast<size_t>(info.check);
    Json check = {{"name", info.name}, {"state", kStates[readiness.state[index]]}};
    if (readiness.state[index] == 2) {
      check["condition"] = info.condition;
      check["reason"] = info.reason;
    }
    Json problems = Json::array();
    for (const Problem& problem : readiness.problems[index]) {
      problems.push_back(ProblemJson(problem));
    }
    check["problems"] = std::move(problems);
    list.push_back(std::move(check));
  }
  return list;
}

Json SelfTestJson(const std::vector<SelfTestResult>& results) {
  Json list = Json::array();
  for (const SelfTestResult& result : results) {
    list.push_back({{"group", result.group},
                    {"attn", result.attn},
                    {"backend", result.row},
                    {"error", result.error},
                    {"tolerance", result.tolerance},
                    {"passed", result.passed()}});
  }
  return list;
}

Json EngineJson(const EngineStats& stats) {
  Json groups = Json::array();
  for (const EngineStats::Group& group : stats.groups) {
    groups.push_back({{"plannedBlocks", group.planned_blocks},
                      {"blocks", group.blocks},
                      {"free", group.free},
                      {"cached", group.cached},
                      {"evictions", group.evictions},
                      {"hitTokens", group.hit_tokens},
                      {"queryTokens", group.query_tokens}});
  }
  return {{"running", stats.running},
          {"waiting", stats.waiting},
          {"waitingTokens", stats.waiting_tokens},
          {"promptTokens", stats.prompt_tokens},
          {"cachedPromptTokens", stats.cached_prompt_tokens},
          {"generatedTokens", stats.generated_tokens},
          {"preemptions", stats.preemptions},
          {"prefixNames", stats.prefix_names},
          {"steps", stats.steps},
          {"lastStepUnixSeconds", stats.last_step_unix_seconds},
          {"warm", stats.warm},
          {"fault", stats.fault.empty() ? Json(nullptr) : Json(stats.fault)},
          {"groups", std::move(groups)}};
}

}  // namespace

Json StatusDocument(const StatusSources& sources) {
  const Readiness::Snapshot& readiness = sources.readiness;
  return {{"version", kVersion},
          {"phase", Name(readiness.phase)},
          {"ready", readiness.ready},
          {"blocker", readiness.blocker},
          {"model", sources.model_name},
          {"digest", sources.digest},
          {"checks", ChecksJson(readiness)},
          {"plan", sources.plan},
          {"selfTest", SelfTestJson(sources.self_test)},
          {"engine", sources.engine != nullptr ? EngineJson(*sources.engine) : Json(nullptr)}};
}

}  // namespace ashlar
