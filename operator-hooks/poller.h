// Asks each model's pods for their /status in the background, so that no sync call waits for a pod.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "operator-hooks/snapshots.h"

namespace ashlar::hooks {

class Poller {
 public:
  // Pods are found through the models' headless services: `<name>-pods.<namespace>.svc.<domain>`,
  // asked of `resolver` ("address:port"; "" for the machine's own). Starts at once; ends with the
  // object. `snapshots` outlives it.
  Poller(SnapshotStore& snapshots, std::string domain, std::string resolver);
  ~Poller();

 private:
  void Run(size_t share);
  Snapshot Ask(const SnapshotStore::ModelKey& model);

  SnapshotStore& snapshots_;
  std::string domain_, resolver_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;  // guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace ashlar::hooks
