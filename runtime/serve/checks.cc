#include "serve/checks.h"

namespace ashlar {
namespace {

constexpr std::array<std::string_view, 6> kPhaseNames = {"starting", "loading",  "ready",
                                                         "rejected", "draining", "failed"};

}  // namespace

std::string_view Name(Phase phase) { return kPhaseNames[static_cast<size_t>(phase)]; }

void Readiness::Pass(ReadyCheck check) {
  std::lock_guard lock(mutex_);
  state_.state[static_cast<size_t>(check)] = 1;
  state_.problems[static_cast<size_t>(check)].clear();
}

void Readiness::FailWith(ReadyCheck check, Problems problems) {
  std::lock_guard lock(mutex_);
  size_t index = static_cast<size_t>(check);
  if (state_.state[index] != 2) ++state_.failures[index];
  state_.state[index] = 2;
  state_.problems[index] = std::move(problems);
}

void Readiness::SetPhase(Phase phase) {
  std::lock_guard lock(mutex_);
  state_.phase = phase;
}

Readiness::Snapshot Readiness::snapshot() const {
  std::lock_guard lock(mutex_);
  Snapshot snapshot = state_;
  // A start does not pass the checks in the table's order: the one that failed says most.
  for (int state : {2, 0}) {
    for (const CheckInfo& info : kChecks) {
      if (snapshot.state[static_cast<size_t>(info.check)] != state) continue;
      snapshot.blocker = info.name;
      return snapshot;
    }
  }
  snapshot.ready = snapshot.phase == Phase::kReady;
  if (!snapshot.ready) snapshot.blocker = Name(snapshot.phase);
  return snapshot;
}

}  // namespace ashlar
