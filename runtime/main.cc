// The command line: serve, plan, probe, validate, version.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>

#include "plan/plan.h"
#include "probe/platform.h"
#include "serve/version.h"
#include "source.h"
#include "spec/spec.h"
#include "start.h"

namespace ashlar {
namespace {

constexpr int kRefused = 2;  // exit status of a command whose input has problems

int Report(const Problems& problems) {
  std::cerr << Text(problems) << std::endl;
  return kRefused;
}

int ShowPlan(const std::string& file, const std::string& platform_name, const std::string& plugins,
             const std::string& output, bool emit_config) {
  Result<Spec> spec = LoadSpecFile(file);
  if (!spec) return Report(spec.problems());
  Result<ModelSource> source = OpenSource(*spec, true);
  if (!source) return Report(source.problems());
  if (emit_config) {
    if (!source->checkpoint || source->checkpoint->config.is_null()) {
      return Report({{file, "the source has no config.json to write", "a folder with config.json",
                      "name such a source"}});
    }
    std::cout << source->checkpoint->config.dump(2) << std::endl;
    return 0;
  }
  Result<Platform> platform =
      platform_name.empty()
          ? Result<Platform>(ProbePlatform({.plugin_directory = plugins, .root = ""}))
          : ReadPlatform(platform_name);
  if (!platform) return Report(platform.problems());
  Result<Plan> plan = MakePlan(*spec, *platform, source->config, source->weights);
  if (!plan) return Report(plan.problems());
  plan->model_name = ServedName(*spec);
  std::cout << (output == "json"   ? ToJson(*plan).dump(2) + "\n"
                : output == "yaml" ? ToYaml(*plan)
                                   : ToText(*plan))
            << std::flush;
  return 0;
}

int Probe(const std::string& capture, const std::string& plugins) {
  Platform platform = ProbePlatform({.plugin_directory = plugins, .root = ""});
  std::string document = ToJson(platform).dump(2);
  if (capture.empty()) {
    std::cout << document << std::endl;
    return 0;
  }
  std::ofstream file(capture);
  file << document << std::endl;
  if (!file)
    return Report({{capture, "cannot be written", "a writable path", "choose another file"}});
  return 0;
}

int Validate(const std::string& file) {
  Result<Spec> spec = LoadSpecFile(file);
  if (!spec) return Report(spec.problems());
  std::cout << fmt::format("{}: valid, digest {}", file, spec->digest) << std::endl;
  return 0;
}

}  // namespace

int Main(int argc, char** argv) {
  CLI::App app("Ashlar serves a language model from one YAML file and explains every choice.");
  app.require_subcommand(1);
  std::string file, plugins;
  auto add_file = [&file](CLI::App* command) {
    command->add_option("-f,--file", file, "ModelSpec or InferenceModel manifest (YAML)")
        ->required();
  };
  auto add_plugins = [&plugins](CLI::App* command) {
    command->add_option("--plugins", plugins,
                        "folder of libashlar_*.so (default: beside the executable)");
  };

  ServeOptions options;
  CLI::App* serve = app.add_subcommand("serve", "plan, load, check and serve the model");
  add_file(serve);
  add_plugins(serve);
  serve->add_option("--port", options.port, "instead of server.port")->check(CLI::Range(1, 65535));
  serve->add_flag("--exit-on-reject", options.exit_on_reject,
                  "exit instead of staying unready; writes the termination message");

  std::string platform, output = "text";
  bool emit_config = false;
  CLI::App* plan = app.add_subcommand("plan", "show what would be decided, and why");
  add_file(plan);
  add_plugins(plan);
  plan->add_option("--platform", platform,
                   "a captured file or a named profile (default: this machine)");
  plan->add_option("-o,--output", output, "text, yaml or json")
      ->check(CLI::IsMember({"text", "yaml", "json"}));
  plan->add_flag("--emit-config", emit_config,
                 "print the model's config.json for source.config instead");

  std::string capture;
  CLI::App* probe = app.add_subcommand("probe", "show this machine as the planner sees it");
  add_plugins(probe);
  probe->add_option("--capture", capture, "write it to a file, for plan --platform");

  CLI::App* validate = app.add_subcommand("validate", "check a spec without planning");
  add_file(validate);
  CLI::App* version = app.add_subcommand("version", "print the version");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    int status = app.exit(error);
    return status == 0 ? 0 : 64;  // EX_USAGE
  }
  if (*version) {
    std::cout << "ashlar " << kVersion << std::endl;
    return 0;
  }
  if (*validate) return Validate(file);
  if (*probe) return Probe(capture, plugins);
  if (*plan) return ShowPlan(file, platform, plugins, output, emit_config);
  options.spec_file = file;
  options.plugin_directory = plugins;
  return Serve(options);
}

}  // namespace ashlar

int main(int argc, char** argv) { return ashlar::Main(argc, argv); }
