#include "operator-hooks/snapshots.h"

namespace ashlar::hooks {

Snapshot SnapshotStore::Get(const std::string& ns, const std::string& name) {
  std::lock_guard lock(mutex_);
  return snapshots_[{ns, name}];
}

void SnapshotStore::Put(const ModelKey& key, Snapshot snapshot) {
  std::lock_guard lock(mutex_);
  auto known = snapshots_.find(key);
  if (known != snapshots_.end()) known->second = std::move(snapshot);
}

void SnapshotStore::Forget(const std::string& ns, const std::string& name) {
  std::lock_guard lock(mutex_);
  snapshots_.erase({ns, name});
}

std::vector<SnapshotStore::ModelKey> SnapshotStore::Models() const {
  std::lock_guard lock(mutex_);
  std::vector<ModelKey> models;
  for (const auto& [key, snapshot] : snapshots_) models.push_back(key);
  return models;
}

}  // namespace ashlar::hooks
