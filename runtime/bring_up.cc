#include "bring_up.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <random>

#include "base/log.h"
#include "engine/self_test.h"
#include "kv/arena.h"
#include "plan/counterfactual.h"
#include "probe/host_device.h"
#include "probe/platform.h"
#include "probe/root_files.h"
#include "weights/load_log.h"
#include "weights/weights.h"

namespace ashlar {
namespace {

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
  FindChanges(run.plan, run.spec, platform, run.source.config, run.source.weights);
  run.plan.model_name = ServedName(run.spec);
  api.SetPlan(run.plan);
  for (const std::string& line : SelectionLines(run.plan)) LogInfo("select", "{}", line);
  for (const std::string& note : run.plan.notes) LogInfo("plan", "{}", note);
  std::vector<AttentionRow> rows;
  for (const Plugin* plugin : scan.plugins)
    rows.insert(rows.end(), plugin->rows().begin(), plugin->rows().end());
  Problems unservable = CheckServable(run.plan, rows);
  if (run.source.config.plan_only()) return Rejection{ReadyCheck::kSource, unservable};
  PassThrough(readiness, ReadyCheck::kPlatform);
  if (!unservable.empty()) return Rejection{ReadyCheck::kBackends, unservable};
  PassThrough(readiness, ReadyCheck::kBackends);
  return std::nullopt;
}

// Each chosen kernel against the reference, noted where /status and the metrics read it. Problems
// of a device that fails, or one for each kernel that is off.
Status SelfTest(const Running& run, ApiServer& api) {
  Result<std::vector<SelfTestResult>> results = RunSelfTest(run.plan, *run.device, *run.reference);
  if (!results) return results.problems();
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
  if (!excess.empty()) return excess;
  return Done{};
}

Engine::Options EngineOptions(const Spec& spec, const Plan& plan) {
  Engine::Options options;
  options.max_sequences = plan.max_sequences;
  options.batch_tokens = plan.batch_tokens;
  options.queued_tokens = spec.limits.queued_tokens;
  options.queued_requests = spec.limits.queued_requests;
  options.queue_seconds = spec.limits.queue_seconds;
  // A long prompt on few cores takes its time; a GPU's step is over in a second.
  if (plan.platform == "cpu" || plan.platform == "reference") options.hang_seconds = 3600;
  options.prefix_cache = spec.kv.prefix_cache;
  std::random_device entropy;
  options.seed = (uint64_t{entropy()} << 32) | entropy();
  return options;
}

// Bytes that the cache may take now. Host memory is given out before it is there, so what is free
// is asked; other devices refuse what they do not have.
int64_t RoomForKv(const Plan& plan, const DeviceInfo& device) {
  if (device.memory_space != "host") return kAnyRoom;
  int64_t free = ReadHostDevice(RootFiles(""), device.platform).free_bytes;
  return free - plan.memory.workspace_bytes - plan.memory.graph_bytes;
}

}  // namespace

std::optional<Rejection> BringUp(Running& run, const std::string& plugin_directory, ApiServer& api,
                                 Readiness& readiness) {
  Stopwatch watch(api);
  Result<ModelSource> source = OpenSource(run.spec, false);
  if (!source) return Rejection{ReadyCheck::kSource, source.problems()};
  run.source = std::move(*source);
  const Checkpoint& checkpoint = *run.source.checkpoint;
  run.file_faults = std::make_unique<FileFaultReport>(checkpoint.files);
  if (checkpoint.format == Checkpoint::Format::kConfigOnly) {
    return Rejection{ReadyCheck::kSource,
                     {{run.spec.origins.Place("source.path"), "is a config.json without weights",
                       "a .gguf or a folder of safetensors", "use ashlar plan for a config.json"}}};
  }
  // The tokenizer of a large vocabulary takes longer than the weights of a small model: it is built
  // on another core meanwhile.
  std::future<Result<ModelText>> text =
      std::async(std::launch::async, [&checkpoint] { return LoadModelText(checkpoint); });
  watch.Lap("source");

  std::string directory = plugin_directory.empty() ? DefaultPluginDirectory() : plugin_directory;
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
  const DeviceInfo& chosen = platform.devices[static_cast<size_t>(run.plan.device)];
  Result<std::unique_ptr<Device>> device = Device::Open(
      *plugin,
      {.index = chosen.index, .threads = run.plan.threads, .invariant = run.plan.invariant});
  Result<std::unique_ptr<Device>> reference = Device::Open(*truth, {.threads = 1});
  if (!device) return Rejection{ReadyCheck::kPlatform, device.problems()};
  if (!reference) return Rejection{ReadyCheck::kPlatform, reference.problems()};
  run.device = std::move(*device);
  run.reference = std::move(*reference);
  watch.Lap("device");

  LoadLog progress(run.plan.model_name);
  Result<ModelWeights> weights = LoadWeights(
      checkpoint, run.source.config, *run.device,
      [&](int64_t done, int64_t total) { progress(done, total); },
      /*fp8=*/run.plan.quantization == "fp8");
  if (!weights) return Rejection{ReadyCheck::kWeights, weights.problems()};
  readiness.Pass(ReadyCheck::kWeights);
  watch.Lap("weights");

  if (Status tested = SelfTest(run, api); !tested.ok())
    return Rejection{ReadyCheck::kSelfTest, tested.problems()};
  readiness.Pass(ReadyCheck::kSelfTest);
  watch.Lap("selfTest");
  Result<KvAllocation> memory = AllocateKv(run.plan, *run.device, RoomForKv(run.plan, chosen));
  if (!memory) return Rejection{ReadyCheck::kBlocks, memory.problems()};
  readiness.Pass(ReadyCheck::kBlocks);
  Result<std::unique_ptr<KvArena>> arena =
      KvArena::Create(run.plan, *run.device, std::move(*memory));
  if (!arena) return Rejection{ReadyCheck::kShapes, arena.problems()};
  readiness.Pass(ReadyCheck::kShapes);
  watch.Lap("kv");
  Engine::Parts parts;
  parts.idle_check = [&run, &api] { return SelfTest(run, api); };
  Result<std::unique_ptr<Engine>> engine =
      Engine::Start(run.plan, *run.device, std::move(*weights), std::move(*arena),
                    EngineOptions(run.spec, run.plan), std::move(parts));
  if (!engine) return Rejection{ReadyCheck::kEngine, engine.problems()};
  watch.Lap("engine");
  Result<ModelText> loaded_text = text.get();
  if (!loaded_text) return Rejection{ReadyCheck::kSource, loaded_text.problems()};
  run.text = std::move(*loaded_text);
  run.engine = std::move(*engine);
  readiness.Pass(ReadyCheck::kEngine);
  watch.Lap("text");
  return std::nullopt;
}

}  // namespace ashlar
