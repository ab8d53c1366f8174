// The command line: serve, plan, import, backends, probe, validate, version.
#include <CLI/CLI.hpp>
#include <iostream>

#include "commands/commands.h"
#include "serve/version.h"
#include "start.h"

namespace ashlar {
namespace {

constexpr int kUsage = 64;  // EX_USAGE
constexpr char kPluginsHelp[] = "folder of libashlar_*.so (default: beside the executable)";
constexpr char kSpecHelp[] = "ModelSpec or InferenceModel manifest (YAML)";

// What would be ignored beside another option excludes it.
void AddPlanOptions(CLI::App& plan, PlanOptions& options) {
  plan.add_option("-f,--file", options.file, kSpecHelp);
  plan.add_option("--plugins", options.plugins, kPluginsHelp);
  CLI::Option* platform = plan.add_option(
      "--platform", options.platform, "a captured file or a named profile (default: this machine)");
  CLI::Option* output = plan.add_option("-o,--output", options.output, "text, yaml or json")
                            ->check(CLI::IsMember({"text", "yaml", "json"}));
  CLI::Option* full = plan.add_flag(
      "--full", options.full, "text with all reasons of every candidate, all layers and strides");
  CLI::Option* emit = plan.add_flag("--emit-config", options.emit_config,
                                    "print the model's config.json for source.config instead")
                          ->excludes(platform)
                          ->excludes(output)
                          ->excludes(full);
  CLI::Option* with =
      plan.add_option("--with", options.with,
                      "a plan of another pool: whether blocks can pass between the two")
          ->excludes(output)
          ->excludes(full)
          ->excludes(emit);
  plan.add_flag("--sweep", options.sweep, "plan on every named profile, as a table")
      ->excludes(platform)
      ->excludes(output)
      ->excludes(full)
      ->excludes(emit)
      ->excludes(with);
  plan.add_option("--catalogue", options.catalogue, "ashlar, or vllm: what vLLM 0.33 would choose")
      ->check(CLI::IsMember({"ashlar", "vllm"}));
  plan.add_option("--assume", options.assume,
                  "with --catalogue vllm: what is installed, as aiter=on,connector=on");
}

void AddImportOptions(CLI::App& import, ImportOptions& options) {
  import.add_option("-f,--file", options.file, "a Pod, a workload or a KServe LLMInferenceService");
  import.add_option("--container", options.container, "of a pod with several");
  CLI::Option* config =
      import.add_option("--config", options.config,
                        "the model's config.json: says what vLLM would choose, and what you get");
  import
      .add_option("--platform", options.platform,
                  "with --config: a captured file or a named profile (default: this machine)")
      ->needs(config);
  import.add_option("words", options.words, "after --: vllm serve MODEL ...");
}

}  // namespace

int Main(int argc, char** argv) {
  CLI::App app("Ashlar serves a language model from one YAML file and explains every choice.");
  app.require_subcommand(1);
  std::string file, plugins;
  auto add_file = [&file](CLI::App* command) {
    command->add_option("-f,--file", file, kSpecHelp)->required();
  };
  auto add_plugins = [&plugins](CLI::App* command) {
    command->add_option("--plugins", plugins, kPluginsHelp);
  };

  ServeOptions options;
  CLI::App* serve = app.add_subcommand("serve", "plan, load, check and serve the model");
  add_file(serve);
  add_plugins(serve);
  serve->add_option("--port", options.port, "instead of server.port")->check(CLI::Range(1, 65535));
  serve->add_flag("--exit-on-reject", options.exit_on_reject,
                  "exit instead of staying unready; writes the termination message");

  PlanOptions planning;
  CLI::App* plan = app.add_subcommand("plan", "show what would be decided, and why");
  AddPlanOptions(*plan, planning);
  std::string from, to;
  CLI::App* diff =
      plan->add_subcommand("diff", "what changed between two plans (1: approval needed)");
  diff->add_option("from", from, "a plan as YAML or JSON")->required();
  diff->add_option("to", to, "another")->required();

  ImportOptions importing;
  CLI::App* import =
      app.add_subcommand("import", "turn a vLLM command line or manifest into a ModelSpec");
  AddImportOptions(*import, importing);

  std::string capture;
  CLI::App* probe = app.add_subcommand("probe", "show this machine as the planner sees it");
  add_plugins(probe);
  probe->add_option("--capture", capture, "write it to a file, for plan --platform");

  CLI::App* validate = app.add_subcommand("validate", "check a spec without planning");
  add_file(validate);
  CLI::App* backends =
      app.add_subcommand("backends", "list the attention rows inside this binary (markdown)");
  CLI::App* version = app.add_subcommand("version", "print the version");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    int status = app.exit(error);
    return status == 0 ? 0 : kUsage;
  }
  if (*version) {
    std::cout << "ashlar " << kVersion << std::endl;
    return 0;
  }
  if (*backends) return BackendsCommand();
  if (*validate) return ValidateCommand(file);
  if (*probe) return ProbeCommand(capture, plugins);
  if (*import) return ImportSpec(importing);
  if (*diff) return DiffCommand(from, to);
  if (*plan) {
    if (!planning.file.empty()) return PlanCommand(planning);
    std::cerr << "plan: --file is required" << std::endl;
    return kUsage;
  }
  options.spec_file = file;
  options.plugin_directory = plugins;
  return Serve(options);
}

}  // namespace ashlar

int main(int argc, char** argv) { return ashlar::Main(argc, argv); }
