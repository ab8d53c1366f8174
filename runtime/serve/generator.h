// What the API needs of an engine, so that tests can put a scripted one in its place.
#pragma once

#include <memory>
#include <variant>

#include "engine/engine.h"

namespace ashlar {

// Each function may be called by any thread; meanings as in engine.h.
class Generator {
 public:
  virtual ~Generator() = default;
  virtual std::variant<uint64_t, SubmitRefusal> Submit(Request request,
                                                       std::shared_ptr<EventQueue> events) = 0;
  virtual void Cancel(uint64_t id) = 0;
  virtual void StopAccepting() = 0;
  virtual EngineStats stats() const = 0;
};

class EngineGenerator final : public Generator {
 public:
  explicit EngineGenerator(Engine& engine) : engine_(engine) {}
  std::variant<uint64_t, SubmitRefusal> Submit(Request request,
                                               std::shared_ptr<EventQueue> events) override {
    return engine_.Submit(std::move(request), std::move(events));
  }
  void Cancel(uint64_t id) override { engine_.Cancel(id); }
  void StopAccepting() override { engine_.StopAccepting(); }
  EngineStats stats() const override { return engine_.stats(); }

 private:
  Engine& engine_;
};

}  // namespace ashlar
