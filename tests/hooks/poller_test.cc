// The poller against a DNS server that is not there: what was known must stay.
#include "operator-hooks/poller.h"

#include <gmock/gmock.h>

#include <atomic>
#include <future>

namespace ashlar::hooks {
namespace {

using testing::HasSubstr;

TEST(Poller, KeepsWhatPodsLastAnsweredWhenTheyCannotBeLookedUp) {
  SnapshotStore store;
  HookMetrics metrics;
  const SnapshotStore::ModelKey key = {"ns", "a"};
  store.Get(key, 0);
  PodStatus pod;
  pod.address = "10.0.0.1";
  store.Put(key, {pod});
  std::atomic<int> rounds = 0;
  std::promise<void> all_have_begun;
  auto clock = [&] {
    // Each of the eight threads asks for the time once a round, and ends the round that it is in.
    if (++rounds == 8) all_have_begun.set_value();
    return int64_t{500};
  };
  {
    Poller poller(store, metrics, clock, "cluster.local", "no address");
    all_have_begun.get_future().wait();
  }
  EXPECT_EQ(store.Get(key, 500).pods.size(), 1u);
  std::string page = metrics.Text(store.Count(500));
  EXPECT_THAT(page, HasSubstr("polls_total{result=\"unresolved\"} "));
  EXPECT_THAT(page, testing::Not(HasSubstr("polls_total{result=\"unresolved\"} 0")));
  EXPECT_THAT(page, HasSubstr("ashlar_hook_last_poll_timestamp_seconds 500"));
}

}  // namespace
}  // namespace ashlar::hooks
