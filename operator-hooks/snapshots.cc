#include "operator-hooks/snapshots.h"

namespace ashlar::hooks {
namespace {

// A model at rest is synced about once a minute.
constexpr int64_t kForgetSeconds = 600, kCountSeconds = 180;

}  // namespace

SnapshotStore::Entry* SnapshotStore::Find(const ModelKey& key) {
  auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second;
}

Snapshot SnapshotStore::Get(const ModelKey& key, int64_t now) {
  std::lock_guard lock(mutex_);
  Entry& entry = entries_[key];
  entry.asked = now;
  return entry.snapshot;
}

void SnapshotStore::Put(const ModelKey& key, std::vector<PodStatus> pods) {
  std::lock_guard lock(mutex_);
  if (Entry* entry = Find(key)) entry->snapshot = {true, std::move(pods)};
}

void SnapshotStore::PutNothing(const ModelKey& key) {
  std::lock_guard lock(mutex_);
  if (Entry* entry = Find(key)) entry->snapshot.polled = true;
}

void SnapshotStore::Judge(const ModelKey& key, const std::vector<Truth>& truths) {
  std::lock_guard lock(mutex_);
  if (Entry* entry = Find(key)) entry->truths = truths;
}

void SnapshotStore::Forget(const ModelKey& key) {
  std::lock_guard lock(mutex_);
  entries_.erase(key);
}

std::vector<SnapshotStore::ModelKey> SnapshotStore::Models(int64_t now) {
  std::lock_guard lock(mutex_);
  std::erase_if(entries_,
                [&](const auto& item) { return item.second.asked < now - kForgetSeconds; });
  std::vector<ModelKey> models;
  for (const auto& [key, entry] : entries_) models.push_back(key);
  return models;
}

SnapshotStore::Counts SnapshotStore::Count(int64_t now) const {
  Counts counts{};
  std::lock_guard lock(mutex_);
  for (const auto& [key, entry] : entries_) {
    if (entry.asked < now - kCountSeconds) continue;
    for (size_t i = 0; i < entry.truths.size(); ++i)
      ++counts[i][static_cast<size_t>(entry.truths[i])];
  }
  return counts;
}

}  // namespace ashlar::hooks
