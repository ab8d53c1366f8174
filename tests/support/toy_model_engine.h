// An engine over the toy model: device, plan and thread in one place.
#pragma once

#include <memory>
#include <utility>

#include "engine/engine.h"
#include "engine/worker.h"
#include "support/toy_model_forward.h"
#include "support/toy_model_plan.h"

namespace ashlar::toy {

inline Engine::Options SmallOptions() {
  Engine::Options options;
  options.max_sequences = 8;
  options.batch_tokens = 64;
  options.seed = 11;
  return options;
}

// The plan and device outlive the engine, so they come first.
struct ToyEngine {
  Plan plan;
  std::unique_ptr<Device> device;
  std::unique_ptr<Engine> engine;

  explicit ToyEngine(const Shape& shape = {}, const Engine::Options& options = SmallOptions(),
                     ToyForward::Hooks hooks = {}, PrefixHash hash = Sha256)
      : plan(MakePlan(shape)), device(OpenReference()) {
    Engine::Parts parts{
        std::make_unique<ToyForward>(plan.model, Engine::LogitRows(options), std::move(hooks)),
        std::move(hash)};
    engine = std::move(
        *Engine::Start(plan, *device, {}, *MakeArena(plan, *device), options, std::move(parts)));
  }
  Engine* operator->() { return engine.get(); }
  Engine& operator*() { return *engine; }
};

// An engine without a thread: whoever has it takes each step. The plan and device outlive it.
inline std::unique_ptr<Worker> MakeWorker(const Plan& plan, const Device& device,
                                          const Engine::Options& options,
                                          std::unique_ptr<Forward> forward) {
  Engine::Parts parts{std::move(forward), Sha256};
  return std::move(
      *Worker::Create(plan, device, {}, *MakeArena(plan, device), options, std::move(parts)));
}

inline std::unique_ptr<Sequence> MakeSequence(uint64_t id, Request request,
                                              std::shared_ptr<EventQueue> events) {
  auto sequence = std::make_unique<Sequence>();
  sequence->id = id;
  sequence->tokens = std::move(request.prompt);
  sequence->prompt_tokens = static_cast<int>(sequence->tokens.size());
  sequence->request = std::move(request);
  sequence->events = std::move(events);
  return sequence;
}

// Such an engine over the toy model.
struct ToyWorker {
  Plan plan;
  std::unique_ptr<Device> device;
  std::unique_ptr<Worker> worker;
  uint64_t next_id = 1;

  explicit ToyWorker(const Shape& shape = {}, const Engine::Options& options = SmallOptions(),
                     ToyForward::Hooks hooks = {})
      : plan(MakePlan(shape)),
        device(OpenReference()),
        worker(MakeWorker(plan, *device, options,
                          std::make_unique<ToyForward>(plan.model, Engine::LogitRows(options),
                                                       std::move(hooks)))) {}
  uint64_t Accept(Request request, std::shared_ptr<EventQueue> events) {
    worker->Accept(MakeSequence(next_id, std::move(request), std::move(events)));
    return next_id++;
  }
  EngineStats stats() const {
    EngineStats stats;
    worker->FillStats(stats);
    return stats;
  }
  Worker* operator->() { return worker.get(); }
};

}  // namespace ashlar::toy
