// What the hooks tell Prometheus of themselves; docs/kubernetes.md repeats the table. The only part
// of them that names prometheus is hook_metrics.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "operator-hooks/snapshots.h"

namespace ashlar::hooks {

enum class Hook { kSync, kFinalize, kCustomize, kValidate };

// What came of asking a pod, or (kUnresolved) of asking for the pods of a model.
enum class PollResult { kAnswered, kUnreachable, kUnreadable, kUnresolved };

// For any thread. Every series is there from the start, with 0.
class HookMetrics {
 public:
  HookMetrics();
  ~HookMetrics();

  // `status` is one that a hook answers: 200, 400 or 429.
  void CountRequest(Hook hook, int status, double seconds);
  // Of the memo: whether the verdict was there.
  void CountVerdict(bool remembered);
  void CountPoll(PollResult result);
  // Every model's pods have been asked since the round before this time, in seconds since 1970.
  void SetPolled(int64_t unix_seconds);
  // The page, in Prometheus text format.
  std::string Text(const SnapshotStore::Counts& models) const;

 private:
  struct Series;
  std::unique_ptr<Series> series_;
};

}  // namespace ashlar::hooks
