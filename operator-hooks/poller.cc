#include "operator-hooks/poller.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "operator-hooks/dns.h"
#include "operator-hooks/http_get.h"
#include "operator-hooks/names.h"

namespace ashlar::hooks {
namespace {

constexpr auto kRound = std::chrono::seconds(2);
constexpr int kAskMilliseconds = 1000;

}  // namespace

Poller::Poller(SnapshotStore& snapshots, HookMetrics& metrics, std::function<int64_t()> clock,
               std::string domain, std::string resolver)
    : snapshots_(snapshots),
      metrics_(metrics),
      clock_(std::move(clock)),
      domain_(std::move(domain)),
      resolver_(std::move(resolver)) {
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
    const int64_t begun = clock_();
    std::vector<SnapshotStore::ModelKey> models = snapshots_.Models(begun);
    for (size_t i = share; i < models.size(); i += kThreads) Ask(models[i]);
    lock.lock();
    rounds_[share] = begun;
    metrics_.SetPolled(*std::min_element(rounds_.begin(), rounds_.end()));
    wake_.wait_for(lock, kRound, [this] { return stopping_; });
  }
}

void Poller::Ask(const SnapshotStore::ModelKey& model) {
  const auto& [ns, name] = model;
  Result<std::vector<std::string>> addresses =
      Resolve(fmt::format("{}.{}.svc.{}", PodsServiceName(name), ns, domain_), resolver_);
  if (!addresses) {
    metrics_.CountPoll(PollResult::kUnresolved);
    snapshots_.PutNothing(model);
    return;
  }
  std::vector<PodStatus> pods;
  JsonParser parser;
  for (const std::string& address : *addresses) {
    if (pods.size() >= kPolledPods) break;
    Result<std::string> body = HttpGet(address, kPodPort, "/status", kAskMilliseconds);
    if (!body) {
      metrics_.CountPoll(PollResult::kUnreachable);
      continue;
    }
    Result<JsonElement> status = parser.Parse(*body, address);
    metrics_.CountPoll(status ? PollResult::kAnswered : PollResult::kUnreadable);
    Problems problems;
    if (status) pods.push_back(ReadPodStatus(*status, address, problems));
  }
  snapshots_.Put(model, std::move(pods));
}

}  // namespace ashlar::hooks
