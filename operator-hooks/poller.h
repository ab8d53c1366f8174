// Asks each model's pods for their /status in the background, so that no sync call waits for a pod.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "operator-hooks/hook_metrics.h"
#include "operator-hooks/snapshots.h"

namespace ashlar::hooks {

class Poller {
 public:
  // Pods are found through the models' headless services: `<name>-pods.<namespace>.svc.<domain>`,
  // asked of `resolver` ("address:port", "[address]:port"; "" for the machine's own). `clock`
  // yields seconds since 1970. Starts at once; ends with the object. The references outlive it.
  Poller(SnapshotStore& snapshots, HookMetrics& metrics, std::function<int64_t()> clock,
         std::string domain, std::string resolver);
  ~Poller();

 private:
  // Models are shared out among these, so that pods that do not answer hold up few others.
  static constexpr size_t kThreads = 8;

  void Run(size_t share);
  void Ask(const SnapshotStore::ModelKey& model);

  SnapshotStore& snapshots_;
  HookMetrics& metrics_;
  std::function<int64_t()> clock_;
  std::string domain_, resolver_;
  // When the last round of each share had begun; guarded by mutex_.
  std::array<int64_t, kThreads> rounds_{};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;  // guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace ashlar::hooks
