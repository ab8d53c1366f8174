#include "start.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <iostream>
#include <random>

#include "base/log.h"
#include "engine/engine.h"
#include "engine/self_test.h"
#include "model_text.h"
#include "plan/plan.h"
#include "probe/platform.h"
#include "serve/server.h"
#include "signals.h"
#include "source.h"
#include "spec/environment.h"
#include "spec/spec.h"
#include "weights/load_log.h"
#include "weights/weights.h"

extern char** environ;

namespace ashlar {
namespace {

struct Rejection {
  ReadyCheck check;
  Problems problems;
};

// Everything that a running model holds, in the order in which it is made.
struct Running {
  Spec spec;
  ModelSource source;
  Plan plan;
  std::unique_ptr<Device> device;
  ModelText text;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<EngineGenerator> generator;
};

// Times the phases of a start for the log and the metric.
class Stopwatch {
 public:
  explicit Stopwatch(ApiServer& api) : api_(api) {}
  void Lap(const std::string& phase) {
    auto now = std::chrono::steady_clock::now();
    api_.SetStartupPhase(phase, std::chrono::duration<double>(now - last_).count());
    last_ = now;
  }

 private:
  ApiServer& api_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

HttpLimits LimitsOf(const Spec::Server& server) {
  HttpLimits limits;
  limits.body_bytes = server.body_bytes;
  limits.head_seconds = server.head_seconds;
  limits.body_seconds = server.body_seconds;
  limits.idle_seconds = server.idle_seconds;
  limits.stuck_reader_seconds = server.stuck_reader_seconds;
  limits.connections = server.connections;
  return limits;
}

std::optional<Rejection> CheckProcessEnvironment() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  EnvironmentReport report = CheckEnvironment(entries);
  for (const std::string& warning : report.warnings) LogWarning("start", "{}", warning);
  if (report.problems.empty()) return std::nullopt;
  return Rejection{ReadyCheck::kSpec, report.problems};
}

const Plugin* FindPlugin(const PluginScan& scan, const std::string& name) {
  auto found = std::find_if(scan.plugins.begin(), scan.plugins.end(),
                            [&](const Plugin* plugin) { return plugin->name() == name; });
  return found == scan.plugins.end() ? nullptr : *found;
}

Problem NoPlugin(const PluginScan& scan, const std::string& name, const std::string& directory) {
  std::string found = fmt::format("no usable plugin \"{}\" in {}", name, directory);
  for (const Problem& refused : scan.refused) found += "; " + refused.Text();
  return {"platform", found, "libashlar_" + name + ".so of this build",
          "install ashlar with its plugins"};
}

std::optional<ReadyCheck> CheckNamed(std::string_view name) {
  for (const CheckInfo& info : kChecks) {
    if (info.name == name) return info.check;
  }
  return std::nullopt;
}

// Passes the named check and every one before it.
void PassThrough(Readiness& readiness, ReadyCheck last) {
  for (const CheckInfo& info : kChecks) {
    if (info.check <= last) readiness.Pass(info.check);
  }
}

std::optional<Rejection> MakeThePlan(Running& run, const PluginScan& scan, const Platform& platform,
                                     ApiServer& api, Readiness& readiness) {
  PlanAttempt attempt = TryPlan(run.spec, platform, run.source.config, run.source.weights);
  if (!attempt.plan) {
    ReadyCheck check = CheckNamed(attempt.check).value_or(ReadyCheck::kBackends);
    if (check > ReadyCheck::kSource)
      PassThrough(readiness, static_cast<ReadyCheck>(static_cast<int>(check) - 1));
    return Rejection{check, attempt.problems};
  }
  run.plan = std::move(*attempt.plan);
  run.plan.model_name = ServedName(run.spec);
  api.SetPlan(run.plan);
  for (const std::string& line : SelectionLines(run.plan)) LogInfo("select", "{}", line);
  for (const std::string& note : run.plan.notes) LogInfo("plan", "{}", note);
  std::vector<AttentionRow> rows;
  for (const Plugin* plugin : scan.plugins)
    rows.insert(rows.end(), plugin->rows().begin(), plugin->rows().end());
  Problems unservable = CheckServable(run.plan, rows);
  if (!run.source.config.has_forward) return Rejection{ReadyCheck::kSource, unservable};
  PassThrough(readiness, ReadyCheck::kPlatform);
  if (!unservable.empty()) return Rejection{ReadyCheck::kBackends, unservable};
  PassThrough(readiness, ReadyCheck::kBackends);
  return std::nullopt;
}

std::optional<Rejection> SelfTest(Running& run, const Device& reference, ApiServer& api,
                                  Readiness& readiness) {
  Result<std::vector<SelfTestResult>> results = RunSelfTest(run.plan, *run.device, reference);
  if (!results) return Rejection{ReadyCheck::kSelfTest, results.problems()};
  Problems excess;
  for (const SelfTestResult& result : *results) {
    if (result.passed()) continue;
    excess.push_back(
        {fmt::format("group {} backend {}", result.group, result.row),
         fmt::format("differs from the reference by {:.3g}", result.error),
         fmt::format("at most {:.3g}", result.tolerance),
         fmt::format("set backends.default.forbid: [{}], or replace the device", result.row)});
  }
  api.SetSelfTest(std::move(*results));
  if (!excess.empty()) return Rejection{ReadyCheck::kSelfTest, excess};
  readiness.Pass(ReadyCheck::kSelfTest);
  return std::nullopt;
}

Engine::Options EngineOptions(const Spec& spec, const Plan& plan) {
  Engine::Options options;
  options.max_sequences = plan.max_sequences;
  options.batch_tokens = plan.batch_tokens;
  options.queued_tokens = spec.limits.queued_tokens;
  options.queued_requests = spec.limits.queued_requests;
  options.queue_seconds = spec.limits.queue_seconds;
  options.prefix_cache = spec.kv.prefix_cache;
  std::random_device entropy;
  options.seed = (uint64_t{entropy()} << 32) | entropy();
  return options;
}

// The line itself: source, probe, plan, weights, kv, engine. Returns at the first check that fails.
std::optional<Rejection> BringUp(Running& run, const ServeOptions& options, ApiServer& api,
                                 Readiness& readiness) {
  Stopwatch watch(api);
  Result<ModelSource> source = OpenSource(run.spec, false);
  if (!source) return Rejection{ReadyCheck::kSource, source.problems()};
  run.source = std::move(*source);
  const Checkpoint& checkpoint = *run.source.checkpoint;
  if (checkpoint.format == Checkpoint::Format::kConfigOnly) {
    return Rejection{ReadyCheck::kSource,
                     {{run.spec.origins.Place("source.path"), "is a config.json without weights",
                       "a .gguf or a folder of safetensors", "use ashlar plan for a config.json"}}};
  }
  watch.Lap("source");

  std::string directory =
      options.plugin_directory.empty() ? DefaultPluginDirectory() : options.plugin_directory;
  PluginScan scan = LoadPlugins(directory);
  Platform platform = ProbePlatform({.plugin_directory = directory, .root = ""});
  watch.Lap("probe");
  if (auto rejection = MakeThePlan(run, scan, platform, api, readiness)) return rejection;
  watch.Lap("plan");

  readiness.SetPhase(Phase::kLoading);
  const Plugin* plugin = FindPlugin(scan, run.plan.platform);
  const Plugin* truth = FindPlugin(scan, "reference");
  if (plugin == nullptr)
    return Rejection{ReadyCheck::kPlatform, {NoPlugin(scan, run.plan.platform, directory)}};
  if (truth == nullptr)
    return Rejection{ReadyCheck::kPlatform, {NoPlugin(scan, "reference", directory)}};
  int index = platform.devices[static_cast<size_t>(run.plan.device)].index;
  Result<std::unique_ptr<Device>> device = Device::Open(
      *plugin, {.index = index, .threads = run.plan.threads, .invariant = run.plan.invariant});
  Result<std::unique_ptr<Device>> reference = Device::Open(*truth, {.threads = 1});
  if (!device) return Rejection{ReadyCheck::kPlatform, device.problems()};
  if (!reference) return Rejection{ReadyCheck::kPlatform, reference.problems()};
  run.device = std::move(*device);

  // The tokenizer is built on another core while the weights are carried in.
  std::future<Result<ModelText>> text =
      std::async(std::launch::async, [&] { return LoadModelText(checkpoint); });
  LoadLog progress(run.plan.model_name);
  Result<ModelWeights> weights =
      LoadWeights(checkpoint, run.source.config, *run.device,
                  [&](int64_t done, int64_t total) { progress(done, total); });
  Result<ModelText> loaded_text = text.get();
  if (!loaded_text) return Rejection{ReadyCheck::kSource, loaded_text.problems()};
  run.text = std::move(*loaded_text);
  if (!weights) return Rejection{ReadyCheck::kWeights, weights.problems()};
  readiness.Pass(ReadyCheck::kWeights);
  watch.Lap("weights");

  if (auto rejection = SelfTest(run, **reference, api, readiness)) return rejection;
  watch.Lap("selfTest");
  Result<std::unique_ptr<Engine>> engine =
      Engine::Start(run.plan, *run.device, std::move(*weights), EngineOptions(run.spec, run.plan));
  // What the engine itself refuses says so; the rest is the arena's, whose views do not agree.
  bool shapes_agree = engine.ok() || engine.problems().front().place.starts_with("engine:");
  if (!shapes_agree) return Rejection{ReadyCheck::kShapes, engine.problems()};
  readiness.Pass(ReadyCheck::kShapes);
  readiness.Pass(ReadyCheck::kBlocks);
  if (!engine) return Rejection{ReadyCheck::kEngine, engine.problems()};
  run.engine = std::move(*engine);
  readiness.Pass(ReadyCheck::kEngine);
  watch.Lap("engine");
  return std::nullopt;
}

void WriteTerminationMessage(const ServeOptions& options, const ApiServer* api,
                             const Problems& problems) {
  std::string message = api != nullptr
                            ? api->StatusJson()
                            : DumpJson({{"phase", "rejected"}, {"problems", Text(problems)}});
  std::cout << message << std::endl;
  std::error_code ignored;
  if (std::filesystem::exists(options.termination_log, ignored))
    std::ofstream(options.termination_log) << message;
}

int ExitStatus(ReadyCheck check) { return 2 + static_cast<int>(check); }

// An address to try on this machine.
std::string HostInUrl(const std::string& host) {
  if (host == "0.0.0.0" || host == "::") return "127.0.0.1";
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

int Reject(const Rejection& rejection, const ServeOptions& options, Signals& signals,
           ApiServer* api, Readiness& readiness) {
  readiness.FailWith(rejection.check, rejection.problems);
  readiness.SetPhase(Phase::kRejected);
  for (const Problem& problem : rejection.problems) LogError("reject", "{}", problem.Text());
  bool no_spec = rejection.check == ReadyCheck::kSpec;
  if (options.exit_on_reject || api == nullptr) {
    WriteTerminationMessage(options, api, rejection.problems);
  } else if (!(no_spec && isatty(STDERR_FILENO) != 0)) {
    signals.Hold();
    LogInfo("reject", "unready; /status on port {} explains; ends with SIGTERM", api->port());
    signals.Wait();
  }
  return ExitStatus(rejection.check);
}

}  // namespace

int Serve(const ServeOptions& options) {
  Signals signals;
  Readiness readiness;
  Running run;
  std::optional<Rejection> rejection = CheckProcessEnvironment();
  Result<Spec> spec = LoadSpecFile(options.spec_file);
  if (!spec && !rejection) rejection = Rejection{ReadyCheck::kSpec, spec.problems()};
  if (spec) run.spec = std::move(*spec);

  ApiServer::Options api_options;
  api_options.host = run.spec.server.host;
  api_options.port = options.port != 0 ? options.port : run.spec.server.port;
  api_options.limits = LimitsOf(run.spec.server);
  if (!run.spec.server.api_key_file.empty()) {
    Result<ApiKeys> keys = ApiKeys::Load(run.spec.server.api_key_file);
    if (!keys && !rejection) rejection = Rejection{ReadyCheck::kSpec, keys.problems()};
    if (keys) api_options.keys = std::move(*keys);
  }
  Result<std::unique_ptr<ApiServer>> started = ApiServer::Start(std::move(api_options), readiness);
  if (!started) {
    Problems problems = rejection ? rejection->problems : Problems{};
    problems.insert(problems.end(), started.problems().begin(), started.problems().end());
    for (const Problem& problem : problems) LogError("start", "{}", problem.Text());
    if (options.exit_on_reject) WriteTerminationMessage(options, nullptr, problems);
    return rejection ? ExitStatus(rejection->check) : 1;
  }
  ApiServer& api = **started;
  if (rejection) return Reject(*rejection, options, signals, &api, readiness);
  readiness.Pass(ReadyCheck::kSpec);
  api.SetModel(ServedName(run.spec), run.spec.digest);

  rejection = BringUp(run, options, api, readiness);
  if (rejection) return Reject(*rejection, options, signals, &api, readiness);

  run.generator = std::make_unique<EngineGenerator>(*run.engine);
  api.Attach({.generator = *run.generator,
              .plan = run.plan,
              .tokenizer = *run.text.tokenizer,
              .chat_template = run.text.chat_template.get(),
              .model_name = run.plan.model_name,
              .token_budget = run.spec.limits.queued_tokens,
              .most_answers = run.spec.limits.queued_requests,
              .limits = {.messages = run.spec.limits.messages,
                         .prompts = run.spec.limits.prompts,
                         .choices = run.spec.limits.choices}});
  signals.Hold();
  readiness.SetPhase(Phase::kReady);
  LogInfo("start", "ready: model {} at http://{}:{}/v1", run.plan.model_name,
          HostInUrl(run.spec.server.host), api.port());

  int received = signals.Wait();
  LogInfo("stop", "signal {}: draining", received);
  signals.OnNext([&api] { api.EndDrainNow(); });  // a second signal ends what still runs
  double lame_duck = received == SIGINT ? 0 : run.spec.server.lame_duck_seconds;
  bool all_ended = api.Drain(lame_duck, run.spec.server.drain_seconds);
  signals.OnNext([] {});
  started->reset();
  LogInfo("stop", "{}",
          all_ended ? "every request ended by itself" : "the last requests were ended");
  return 0;
}

}  // namespace ashlar
