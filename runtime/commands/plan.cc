#include "plan/plan.h"

#include <fmt/format.h>

#include <iostream>

#include "catalogue/reference_plan.h"
#include "commands/commands.h"
#include "commands/sweep.h"
#include "plan/counterfactual.h"
#include "plan/document.h"
#include "plan/exchange.h"
#include "plan/yaml.h"
#include "source.h"

namespace ashlar {
namespace {

// A plan of either kind, as the output that was asked for.
std::string Render(const std::string& text, const Json& json, const std::string& output) {
  if (output == "json") return json.dump(2) + "\n";
  return output == "yaml" ? YamlOf(json) : text;
}

int EmitConfig(const std::string& file, const ModelSource& source) {
  if (!source.checkpoint || source.checkpoint->config.is_null()) {
    return Report({{file, "the source has no config.json to write", "a folder with config.json",
                    "name such a source"}});
  }
  std::cout << source.checkpoint->config.dump(2) << std::endl;
  return 0;
}

std::string RepackText(const Exchange::Repack& repack) {
  return fmt::format(
      "  {}: {} tokens a unit, {} blocks here, {} there; {} runs of {} bytes a layer\n",
      repack.group, repack.unit_tokens, repack.blocks_here, repack.blocks_there, repack.runs,
      repack.run_bytes);
}

std::string Lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "  " + line + "\n";
  return text;
}

struct Answer {
  std::string text;
  int status = 0;
};
Answer AnswerOf(const Exchange& exchange, const std::string& hash) {
  Answer answer;
  switch (exchange.verdict) {
    case Exchange::Verdict::kSame:
      return {fmt::format("blocks pass as they are: both plans have hash {}\n", hash), 0};
    case Exchange::Verdict::kRows:
      return {"blocks pass as they are; the hashes differ, for other rows read them:\n" +
                  Lines(exchange.differences),
              0};
    case Exchange::Verdict::kChange:
      return {fmt::format("blocks pass when both are planned with\n  kv: {{blockSize: {0}, layout: "
                          "{1}}}\nprefixes are then reused in units of {0} tokens on both\n",
                          exchange.block_tokens, Name(exchange.layout)),
              1};
    case Exchange::Verdict::kRepack:
      answer = {"no block size and layout suit both; each block is copied:\n", 3};
      for (const Exchange::Repack& repack : exchange.repacks) answer.text += RepackText(repack);
      return answer;
    case Exchange::Verdict::kNever:
      return {"the caches hold different things:\n" + Lines(exchange.differences), 4};
  }
  return answer;
}

int Compare(const Plan& plan, const std::string& other) {
  Result<Json> there = ReadPlanDocument(other);
  if (!there) return Report(there.problems());
  Answer answer = AnswerOf(MatchPlans(ToJson(plan), *there, KnownRows()), plan.hash);
  std::cout << answer.text << std::flush;
  return answer.status;
}

int ShowReference(const PlanOptions& options, const Spec& spec, const ModelSource& source) {
  if (!options.with.empty()) {
    return Report({{"--with", "is stated with --catalogue vllm", "a plan that is carried out",
                    "leave one of the two out"}});
  }
  Result<VllmAssume> assume = ParseAssume(options.assume, "--assume");
  if (!assume) return Report(assume.problems());
  if (options.sweep) {
    std::cout << ReferenceSweepTable(spec, source, *assume) << std::flush;
    return 0;
  }
  Result<Platform> platform = PlatformOf(options.platform, options.plugins);
  if (!platform) return Report(platform.problems());
  Result<ReferencePlan> plan =
      PlanLikeReference(spec, *platform, source.config, source.weights, *assume);
  if (!plan) return Report(plan.problems());
  plan->model_name = ServedName(spec);
  std::cout << Render(ToText(*plan), ToJson(*plan), options.output) << std::flush;
  return plan->failed.empty() ? 0 : kRefused;
}

int ShowPlan(const PlanOptions& options, const Spec& spec, const ModelSource& source) {
  if (!options.assume.empty()) {
    return Report({{"--assume", "is stated without --catalogue vllm", "facts of that catalogue",
                    "add --catalogue vllm, or leave it out"}});
  }
  if (options.sweep) {
    std::cout << SweepTable(spec, source) << std::flush;
    return 0;
  }
  Result<Platform> platform = PlatformOf(options.platform, options.plugins);
  if (!platform) return Report(platform.problems());
  Result<Plan> plan = MakePlan(spec, *platform, source.config, source.weights);
  if (!plan) return Report(plan.problems());
  plan->model_name = ServedName(spec);
  FindChanges(*plan, spec, *platform, source.config, source.weights);
  if (!options.with.empty()) return Compare(*plan, options.with);
  std::cout << Render(ToText(*plan, options.full), ToJson(*plan), options.output) << std::flush;
  return 0;
}

}  // namespace

int PlanCommand(const PlanOptions& options) {
  Result<Spec> spec = LoadSpecFile(options.file);
  if (!spec) return Report(spec.problems());
  Result<ModelSource> source = OpenSource(*spec, true);
  if (!source) return Report(source.problems());
  if (options.emit_config) return EmitConfig(options.file, *source);
  return options.catalogue == "vllm" ? ShowReference(options, *spec, *source)
                                     : ShowPlan(options, *spec, *source);
}

}  // namespace ashlar
