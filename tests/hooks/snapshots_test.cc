#include "operator-hooks/snapshots.h"

#include <gmock/gmock.h>

namespace ashlar::hooks {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Key = SnapshotStore::ModelKey;

const Key kA = {"ns", "a"}, kB = {"ns", "b"};

std::vector<PodStatus> OnePod() {
  PodStatus pod;
  pod.address = "10.0.0.1";
  return {pod};
}

TEST(Snapshots, AModelIsPolledOnceItWasAskedFor) {
  SnapshotStore store;
  store.Put(kA, OnePod());
  EXPECT_THAT(store.Models(0), IsEmpty()) << "nobody has asked for it";
  EXPECT_FALSE(store.Get(kA, 0).polled);
  store.Put(kA, OnePod());
  EXPECT_TRUE(store.Get(kA, 0).polled);
  EXPECT_EQ(store.Get(kA, 0).pods.size(), 1u);
}

TEST(Snapshots, WhatCannotBeFoundStaysAsItWas) {
  SnapshotStore store;
  store.Get(kA, 0);
  store.PutNothing(kA);
  EXPECT_TRUE(store.Get(kA, 0).polled) << "a sync call waits for one try, not for a success";
  store.Put(kA, OnePod());
  store.PutNothing(kA);
  EXPECT_EQ(store.Get(kA, 0).pods.size(), 1u);
}

TEST(Snapshots, WhatNobodyAsksForAnyMoreIsForgotten) {
  SnapshotStore store;
  store.Get(kA, 1000);
  store.Get(kB, 1001);
  EXPECT_THAT(store.Models(1600), ElementsAre(kA, kB));
  EXPECT_THAT(store.Models(1601), ElementsAre(kB));
  store.Forget(kB);
  EXPECT_THAT(store.Models(1601), IsEmpty());
}

TEST(Snapshots, CountModelsByConditionWhileTheyAreSynced) {
  SnapshotStore store;
  std::vector<Truth> truths(kConditionTypes.size(), Truth::kTrue);
  for (const Key& key : {kA, kB}) {
    store.Get(key, key == kA ? 1000 : 1100);
    store.Judge(key, truths);
    truths[0] = Truth::kFalse;
  }
  EXPECT_THAT(store.Count(1180)[0], ElementsAre(1, 1, 0));
  EXPECT_THAT(store.Count(1181)[0], ElementsAre(0, 1, 0));
  EXPECT_THAT(store.Count(1181)[1], ElementsAre(1, 0, 0));
}

}  // namespace
}  // namespace ashlar::hooks
