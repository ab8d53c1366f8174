// What the pods of each model last answered: written by the poller, read by sync calls.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "operator-hooks/pod_status.h"

namespace ashlar::hooks {

// For any thread.
class SnapshotStore {
 public:
  using ModelKey = std::pair<std::string, std::string>;  // namespace, name

  // An unknown model is remembered, so that the next round of polling asks its pods.
  Snapshot Get(const std::string& ns, const std::string& name);
  // Ignored for a model that nobody has asked for.
  void Put(const ModelKey& key, Snapshot snapshot);
  void Forget(const std::string& ns, const std::string& name);
  // Sorted.
  std::vector<ModelKey> Models() const;

 private:
  mutable std::mutex mutex_;
  std::map<ModelKey, Snapshot> snapshots_;
};

}  // namespace ashlar::hooks
