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

// The same without a thread: the test takes each step.
struct ToyWorker {
  Plan plan;
  std::unique_ptr<Device> device;
  std::unique_ptr<Worker> worker;
  uint64_t next_id = 1;

  explicit ToyWorker(const Shape& shape = {}, const Engine::Options& options = SmallOptions(),
                     ToyForward::Hooks hooks = {})
      : plan(MakePlan(shape)), device(OpenReference()) {
    Engine::Parts parts{
        std::make_unique<ToyForward>(plan.model, Engine::LogitRows(options), std::move(hooks)),
        Sha256};
    worker = std::move(
        *Worker::Create(plan, *device, {}, *MakeArena(plan, *device), options, std::move(parts)));
  }
  uint64_t Accept(Request request, std::shared_ptr<EventQueue> events) {
    auto sequence = std::make_unique<Sequence>();
    sequence->id = next_id++;
    sequence->tokens = std::move(request.prompt);
    sequence->prompt_tokens = static_cast<int>(sequence->tokens.size());
    sequence->request = std::move(request);
    sequence->events = std::move(events);
    uint64_t id = sequence->id;
    worker->Accept(std::move(sequence));
    return id;
  }
  EngineStats stats() const {
    EngineStats stats;
    worker->FillStats(stats);
    return stats;
  }
  Worker* operator->() { return worker.get(); }
};

}  // namespace ashlar::toy
