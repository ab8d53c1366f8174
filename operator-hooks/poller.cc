#include "operator-hooks/poller.h"

#include <fmt/format.h>

#include <chrono>

#include "operator-hooks/dns.h"
#include "operator-hooks/http_get.h"
#include "operator-hooks/names.h"

namespace ashlar::hooks {
namespace {

constexpr auto kRound = std::chrono::seconds(2);
constexpr int kAskMilliseconds = 1000;
// Models are shared out among these, so that pods that do not answer hold up few others.
constexpr size_t kThreads = 8;

}  // namespace

Poller::Poller(SnapshotStore& snapshots, std::string domain, std::string resolver)
    : snapshots_(snapshots), domain_(std::move(domain)), resolver_(std::move(resolver)) {
  for (size_t i = 0; i < kThreads; ++i) threads_.emplace_back([this, i] { Run(i); });
}

Poller::~Poller() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Poller::Run(size_t share) {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    std::vector<SnapshotStore::ModelKey> models = snapshots_.Models();
    for (size_t i = share; i < models.size(); i += kThreads)
      snapshots_.Put(models[i], Ask(models[i]));
    lock.lock();
    wake_.wait_for(lock, kRound, [this] { return stopping_; });
  }
}

Snapshot Poller::Ask(const SnapshotStore::ModelKey& model) {
  const auto& [ns, name] = model;
  Snapshot snapshot;
  snapshot.polled = true;
  Result<std::vector<std::string>> addresses =
      Resolve(fmt::format("{}.{}.svc.{}", PodsServiceName(name), ns, domain_), resolver_);
  if (!addresses) return snapshot;
  JsonParser parser;
  for (const std::string& address : *addresses) {
    if (snapshot.pods.size() >= kPolledPods) break;
    Result<std::string> body = HttpGet(address, kPodPort, "/status", kAskMilliseconds);
    if (!body) continue;
    Result<JsonElement> status = parser.Parse(*body, address);
    Problems problems;
    if (status) snapshot.pods.push_back(ReadPodStatus(*status, address, problems));
  }
  return snapshot;
}

}  // namespace ashlar::hooks
