#include "engine/engine.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "engine/worker.h"

namespace ashlar {

namespace {
using Clock = std::chrono::steady_clock;
}

struct Engine::Impl {
  Impl(std::unique_ptr<Worker> engine_worker, const Options& options, std::function<Status()> check)
      : hang(options.hang_seconds),
        check_every(options.check_seconds),
        idle_check(std::move(check)),
        worker(std::move(engine_worker)),
        intake({options.queued_tokens, options.queued_requests, options.queue_seconds}) {}

  void Loop();
  void Watch(const std::function<Status()>& run);
  void Fault(const Problems& problems);
  void Publish();
  bool Hangs() const;

  const std::chrono::duration<double> hang, check_every;
  const std::function<Status()> idle_check;
  // When the step under way began, in steady-clock ticks; 0 between steps.
  std::atomic<Clock::rep> step_begun{0};
  std::unique_ptr<Worker> worker;  // the thread's alone, once it runs
  Intake intake;
  bool faulted = false;
  std::string fault;

  mutable std::mutex stats_mutex;
  EngineStats stats;

  std::thread thread;
};

void Engine::Impl::Loop() {
  constexpr std::chrono::duration<double> kForGood = std::chrono::hours(24 * 365);
  Intake::Work work;
  Clock::time_point checked = Clock::now();
  while (!work.stop) {
    const bool busy = !faulted && !(worker->idle() && worker->warm());
    const bool checks = idle_check != nullptr && !faulted;
    const std::chrono::duration<double> patience = busy     ? worker->Spare()
                                                   : checks ? check_every
                                                            : kForGood;
    intake.Take(patience, {worker->waiting(), worker->waiting_tokens(), worker->oldest_arrival()},
                work);
    for (auto& sequence : work.arrived) worker->Accept(std::move(sequence));
    for (uint64_t id : work.cancelled) worker->Cancel(id);
    if (work.stop) {
      worker->EndAll(FinishReason::kCancelled, "");
    } else if (faulted) {
      // A request that was on its way when the device failed.
      worker->EndAll(FinishReason::kError, "the device failed");
    } else if (worker->idle() && checks && Clock::now() - checked >= check_every) {
      Watch([this] { return idle_check(); });
      checked = Clock::now();
    } else if (worker->Spare().count() == 0) {  // or one may come before the next step
      Watch([this] { return worker->Step(); });
    }
    Publish();
    worker->Flush();
  }
}

// Runs what may hang or fail with the device.
void Engine::Impl::Watch(const std::function<Status()>& run) {
  step_begun = Clock::now().time_since_epoch().count();
  Status status = run();
  step_begun = 0;
  if (!status.ok()) Fault(status.problems());
}

void Engine::Impl::Fault(const Problems& problems) {
  fault = Text(problems);
  faulted = true;
  LogError("engine", "the device failed, no request will run: {}", fault);
  intake.Refuse(SubmitRefusal::kFault);
  worker->EndAll(FinishReason::kError, "the device failed");
}

void Engine::Impl::Publish() {
  std::lock_guard lock(stats_mutex);
  worker->FillStats(stats);
  if (faulted) stats.fault = fault;
}

bool Engine::Impl::Hangs() const {
  const Clock::rep begun = step_begun;
  return begun != 0 && Clock::now().time_since_epoch() - Clock::duration(begun) > hang;
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<Engine>> Engine::Start(const Plan& plan, const Device& device,
                                              ModelWeights weights, std::unique_ptr<KvArena> arena,
                                              const Options& options) {
  return Start(plan, device, std::move(weights), std::move(arena), options, Parts{});
}

Result<std::unique_ptr<Engine>> Engine::Start(const Plan& plan, const Device& device,
                                              ModelWeights weights, std::unique_ptr<KvArena> arena,
                                              const Options& options, Parts parts) {
  std::function<Status()> check = std::move(parts.idle_check);
  auto worker =
      Worker::Create(plan, device, std::move(weights), std::move(arena), options, std::move(parts));
  if (!worker.ok()) return worker.problems();
  if (auto rehearsed = (*worker)->Rehearse(); !rehearsed.ok()) return rehearsed.problems();
  auto impl = std::make_unique<Impl>(std::move(*worker), options, std::move(check));
  impl->Publish();
  impl->thread = std::thread([loop = impl.get()] { loop->Loop(); });
  return std::unique_ptr<Engine>(new Engine(std::move(impl)));
}

Engine::~Engine() {
  impl_->intake.Refuse(SubmitRefusal::kStopping);
  impl_->intake.Stop();
  impl_->thread.join();
}

std::variant<uint64_t, SubmitRefusal> Engine::Submit(Request request,
                                                     std::shared_ptr<EventQueue> events) {
  return impl_->intake.Submit(std::move(request), std::move(events));
}

void Engine::Cancel(uint64_t id) { impl_->intake.Cancel(id); }

void Engine::StopAccepting() { impl_->intake.Refuse(SubmitRefusal::kStopping); }

EngineStats Engine::stats() const {
  EngineStats stats;
  {
    std::lock_guard lock(impl_->stats_mutex);
    stats = impl_->stats;
  }
  if (stats.fault.empty() && impl_->Hangs()) {
    impl_->intake.Refuse(SubmitRefusal::kFault);
    stats.fault = fmt::format("a step has not ended for {:.0f} s", impl_->hang.count());
  }
  return stats;
}

}  // namespace ashlar
