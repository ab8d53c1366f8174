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

std::string Render(const Plan& plan, const PlanOptions& options) {
  if (options.output == "json") return ToJson(plan).dump(2) + "\n";
  return options.output == "yaml" ? ToYaml(plan) : ToText(plan, options.full);
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

int Compare(const Plan& plan, const std::string& other) {
  Result<Json> there = ReadPlanDocument(other);
  if (!there) return Report(there.problems());
  Exchange exchange = MatchPlans(ToJson(plan), *there, KnownRows());
  using Verdict = Exchange::Verdict;
  std::string text;
  switch (exchange.verdict) {
    case Verdict::kSame:
      text = fmt::format("blocks pass as they are: both plans have hash {}\n", plan.hash);
      break;
    case Verdict::kChange:
      text = fmt::format(
          "blocks pass when both are planned with\n  kv: {{blockSize: {}, layout: {}}}\n",
          exchange.block_tokens, Name(exchange.layout));
      break;
    case Verdict::kRepack:
      text = "no block size and layout suit both; each block is copied:\n";
      for (const Exchange::Repack& repack : exchange.repacks) text += RepackText(repack);
      break;
    case Verdict::kNever:
      text = "the caches hold different things:\n";
      for (const std::string& difference : exchange.differences) text += "  " + difference + "\n";
      break;
  }
  std::cout << text << std::flush;
  switch (exchange.verdict) {
    case Verdict::kSame:
      return 0;
    case Verdict::kChange:
      return 1;
    case Verdict::kRepack:
      return 3;
    case Verdict::kNever:
      return 4;
  }
  return 4;
}

int ShowReference(const PlanOptions& options, const Spec& spec, const Platform& platform,
                  const ModelSource& source) {
  Result<VllmAssume> assume = ParseAssume(options.assume, "--assume");
  if (!assume) return Report(assume.problems());
  Result<ReferencePlan> plan =
      PlanLikeReference(spec, platform, source.config, source.weights, *assume);
  if (!plan) return Report(plan.problems());
  plan->model_name = ServedName(spec);
  std::cout << (options.output == "json"   ? ToJson(*plan).dump(2) + "\n"
                : options.output == "yaml" ? YamlOf(ToJson(*plan))
                                           : ToText(*plan))
            << std::flush;
  return plan->failed.empty() ? 0 : kRefused;
}

}  // namespace

int PlanCommand(const PlanOptions& options) {
  Result<Spec> spec = LoadSpecFile(options.file);
  if (!spec) return Report(spec.problems());
  Result<ModelSource> source = OpenSource(*spec, true);
  if (!source) return Report(source.problems());
  if (options.emit_config) return EmitConfig(options.file, *source);
  if (options.sweep) {
    std::cout << SweepTable(*spec, *source) << std::flush;
    return 0;
  }
  Result<Platform> platform = PlatformOf(options.platform, options.plugins);
  if (!platform) return Report(platform.problems());
  if (options.catalogue == "vllm") return ShowReference(options, *spec, *platform, *source);
  if (!options.assume.empty()) {
    return Report({{"--assume", "is stated without --catalogue vllm", "facts of that catalogue",
                    "add --catalogue vllm, or leave it out"}});
  }
  Result<Plan> plan = MakePlan(*spec, *platform, source->config, source->weights);
  if (!plan) return Report(plan.problems());
  plan->model_name = ServedName(*spec);
  FindChanges(*plan, *spec, *platform, source->config, source->weights);
  if (!options.with.empty()) return Compare(*plan, options.with);
  std::cout << Render(*plan, options) << std::flush;
  return 0;
}

}  // namespace ashlar
