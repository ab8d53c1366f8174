// What is remembered of each model from call to call: what its pods last answered, and how it was
// last judged.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "operator-hooks/condition.h"
#include "operator-hooks/pod_status.h"

namespace ashlar::hooks {

// Times are seconds since 1970. For any thread.
class SnapshotStore {
 public:
  using ModelKey = std::pair<std::string, std::string>;  // namespace, name

  // An unknown model is remembered, so that the next round of polling asks its pods.
  Snapshot Get(const ModelKey& key, int64_t now);
  // These are ignored for a model that nobody has asked for.
  void Put(const ModelKey& key, std::vector<PodStatus> pods);
  // Its pods could not even be found: what they last answered stays.
  void PutNothing(const ModelKey& key);
  // `truths` in the order of kConditionTypes.
  void Judge(const ModelKey& key, const std::vector<Truth>& truths);
  void Forget(const ModelKey& key);

  // Sorted. Forgets what no sync call has asked for in ten minutes: another server of these hooks
  // has the model now, or has seen its end.
  std::vector<ModelKey> Models(int64_t now);

  // Models that were synced in the last three minutes, by condition and its status.
  using Counts = std::array<std::array<int64_t, kTruths.size()>, kConditionTypes.size()>;
  Counts Count(int64_t now) const;

 private:
  struct Entry {
    Snapshot snapshot;
    std::vector<Truth> truths;  // empty before the first sync has ended
    int64_t asked = 0;
  };
  Entry* Find(const ModelKey& key);  // null for an unknown one; under the lock

  mutable std::mutex mutex_;
  std::map<ModelKey, Entry> entries_;
};

}  // namespace ashlar::hooks
