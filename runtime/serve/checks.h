// The one table of readiness checks: feeds /readyz, /status, the metric, condition reasons and the
// docs.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.h"

namespace ashlar {

enum class ReadyCheck {
  kSpec,
  kSource,
  kPlatform,
  kBackends,
  kShapes,
  kBlocks,
  kWeights,
  kSelfTest,
  kEngine
};

struct CheckInfo {
  ReadyCheck check;
  std::string_view name;       // in /readyz, /status and the metric label
  std::string_view condition;  // type of the custom resource's condition
  std::string_view reason;     // its reason when the check fails
  std::string_view meaning;    // for docs/operations.md
};

inline constexpr std::array<CheckInfo, 9> kChecks = {{
    {ReadyCheck::kSpec, "spec", "Accepted", "SpecInvalid", "the document is a valid ModelSpec"},
    {ReadyCheck::kSource, "source", "SourceReady", "SourceInvalid",
     "the model's files are there, whole and of a supported architecture"},
    {ReadyCheck::kPlatform, "platform", "PlatformDetected", "NoDevice",
     "the device that the spec asks for was found"},
    {ReadyCheck::kBackends, "backends", "BackendsSelected", "NoValidBackend",
     "each KV group has a backend with a kernel"},
    {ReadyCheck::kShapes, "shapes", "ShapesValidated", "ShapeMismatch",
     "spec, backend and allocation agree on every shape"},
    {ReadyCheck::kBlocks, "blocks", "ShapesValidated", "KVDoesNotFit",
     "the block sizes fit and the pool holds at least one sequence"},
    {ReadyCheck::kWeights, "weights", "SourceReady", "WeightsInvalid", "every tensor is loaded"},
    {ReadyCheck::kSelfTest, "selfTest", "Serving", "SelfTestFailed",
     "each chosen kernel agrees with the reference"},
    {ReadyCheck::kEngine, "engine", "Serving", "EngineDead", "the engine takes requests"},
}};

enum class Phase { kStarting, kLoading, kReady, kRejected, kDraining, kFailed };
std::string_view Name(Phase phase);

// Written by main's thread, read by HTTP threads.
class Readiness {
 public:
  void Pass(ReadyCheck check);
  void FailWith(ReadyCheck check, Problems problems);
  void SetPhase(Phase phase);

  struct Snapshot {
    Phase phase = Phase::kStarting;
    std::array<int, 9> state{};  // 0 not reached, 1 passed, 2 failed
    std::array<Problems, 9> problems;
    std::array<int64_t, 9> failures{};  // times that the check turned from not failed to failed
    bool ready = false;                 // all passed, and the phase is kReady
    // The first check that failed, else the first not passed, else the phase: "backends",
    // "draining".
    std::string blocker;
  };
  Snapshot snapshot() const;

 private:
  mutable std::mutex mutex_;
  Snapshot state_;
};

}  // namespace ashlar
