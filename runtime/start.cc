#include "start.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>

#include "base/log.h"
#include "bring_up.h"
#include "listen_address.h"
#include "serve/server.h"
#include "signals.h"
#include "spec/environment.h"
#include "spec/spec.h"

extern char** environ;

namespace ashlar {
namespace {

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
  if (spec) {
    run.spec = std::move(*spec);
  } else {
    run.spec.server = ReadListenAddress(options.spec_file);  // to explain itself where it is asked
  }

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

  rejection = BringUp(run, options.plugin_directory, api, readiness);
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
