// The way of a model through the hooks, transition by transition.
#include "operator-hooks/sync.h"

#include <gmock/gmock.h>

#include "support/hooks_cluster.h"

namespace ashlar::hooks {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Json Demo(int replicas = 1) {
  return {{"model", {{"source", {{"builtin", "demo"}}}}}, {"replicas", replicas}};
}

std::string Pretty(const Reconciled& result) {
  return MustParse(result.Body(false)).dump(2) + "\n";
}

std::string PrettyStatus(const HooksCluster& cluster) {
  return cluster.parent["status"].dump(2) + "\n";
}

TEST(Sync, FirstSyncMakesEveryChild) {
  HooksCluster cluster(Demo());
  ExpectGolden("created.json", Pretty(cluster.Sync()));
  EXPECT_EQ(cluster.Truth("Accepted"), "True");
  EXPECT_EQ(cluster.Truth("Ready"), "False");
}

TEST(Sync, LoadingPodsAreNotReady) {
  HooksCluster cluster(Demo());
  cluster.Sync();
  cluster.SetReady(0);
  cluster.Sync();
  EXPECT_EQ(cluster.parent["status"]["phase"], "Scheduling");
  ExpectGolden("scheduling.json", PrettyStatus(cluster));
}

TEST(Sync, ServingPodsAreReadyAndShown) {
  HooksCluster cluster(Demo());
  cluster.Settle();
  EXPECT_EQ(cluster.Truth("Ready"), "True");
  EXPECT_EQ(cluster.parent["status"]["backends"], "full_attention=CPU_PAGED");
  EXPECT_EQ(cluster.parent["status"]["platform"]["name"], "cpu");
  ExpectGolden("ready.json", PrettyStatus(cluster));
}

TEST(Sync, ReadyWithoutSnapshotAfterTheHooksStartedAnew) {
  HooksCluster cluster(Demo());
  cluster.Settle();
  Json before = cluster.parent["status"];
  cluster.snapshot = {};
  cluster.Sync();
  EXPECT_EQ(cluster.Truth("Ready"), "True");
  EXPECT_EQ(CanonicalJson(cluster.parent["status"]["kvGroups"]), CanonicalJson(before["kvGroups"]));
}

TEST(Sync, RejectedPodTellsItsOwnReason) {
  HooksCluster cluster(Demo());
  cluster.Sync();
  cluster.SetReady(0);
  cluster.SetPods("blocks");
  cluster.Sync();
  EXPECT_EQ(cluster.Reason("Ready"), "KVDoesNotFit");
  EXPECT_EQ(cluster.Message("ShapesValidated"), "what went wrong");
  EXPECT_EQ(cluster.parent["status"]["phase"], "Failed");
  ExpectGolden("rejected.json", PrettyStatus(cluster));
}

TEST(Sync, ModelOnAnotherVendorsDeviceIsNotReady) {
  Json spec = Demo();
  spec["accelerator"] = {{"vendor", "nvidia"}};
  HooksCluster cluster(spec);
  cluster.Sync();
  cluster.SetReady(1);
  cluster.SetPods();
  cluster.Sync();
  EXPECT_EQ(cluster.Reason("Ready"), "WrongVendor");
  EXPECT_EQ(cluster.Message("PlatformDetected"),
            "spec.accelerator.vendor is nvidia, but a pod runs on cpu (AMD EPYC 7763)");
  cluster.Change("accelerator", {{"vendor", "nvidia"}, {"onMismatch", "Degrade"}});
  cluster.Sync();
  EXPECT_EQ(cluster.Truth("PlatformDetected"), "True");
  EXPECT_EQ(cluster.Reason("Degraded"), "WrongVendor");
}

TEST(Sync, LastFailureOutlivesThePodAndKeepsItsTime) {
  HooksCluster cluster(Demo());
  cluster.Sync();
  cluster.SetReady(0);
  cluster.SetPods("weights");
  cluster.Sync();
  Json failure = cluster.parent["status"]["lastFailure"];
  cluster.now += 100;
  cluster.Sync();
  EXPECT_EQ(cluster.parent["status"]["lastFailure"], failure);
  cluster.SetReady(1);
  cluster.SetPods();
  cluster.Sync();
  EXPECT_EQ(cluster.Truth("Ready"), "True");
  EXPECT_EQ(cluster.parent["status"]["lastFailure"], failure);
}

TEST(Sync, InvalidDocumentMakesNothing) {
  Json spec = Demo();
  spec["model"]["kv"] = {{"blockSize", 0}};
  HooksCluster cluster(spec);
  Reconciled result = cluster.Sync();
  EXPECT_THAT(result.children, IsEmpty());
  EXPECT_EQ(cluster.Reason("Accepted"), "SpecInvalid");
  EXPECT_EQ(
      cluster.Message("Ready"),
      "spec.model.kv.blockSize: 0 is too small: auto, or a positive integer; use auto, or for "
      "example 16");
  ExpectGolden("refused.json", PrettyStatus(cluster));
}

TEST(Sync, RefusedChangeKeepsWhatServes) {
  HooksCluster cluster(Demo(2));
  cluster.Settle();
  Json before = cluster.children;
  cluster.Change("model", {{"source", {{"builtin", "demo"}}}, {"kv", {{"blockSize", 0}}}});
  cluster.Sync();
  EXPECT_EQ(cluster.children, before);
  EXPECT_EQ(cluster.Reason("Accepted"), "SpecInvalid");
  EXPECT_EQ(cluster.Reason("Degraded"), "SpecRefused");
  cluster.Change("model", Demo()["model"]);
  cluster.Sync();
  EXPECT_EQ(cluster.children, before);
  EXPECT_EQ(cluster.Truth("Ready"), "True");
}

TEST(Sync, NewDocumentRollsPodsAndKeepsTheOldOneMeanwhile) {
  HooksCluster cluster(Demo());
  cluster.Settle();
  std::string old_hostname = cluster.Hostname();
  cluster.Change("model", {{"source", {{"builtin", "demo"}}}, {"limits", {{"sequences", 8}}}});
  cluster.Sync();
  EXPECT_NE(cluster.Hostname(), old_hostname);
  EXPECT_EQ(cluster.children["ConfigMap.v1"].size(), 2u);
  EXPECT_EQ(cluster.Reason("Progressing"), "RollingOut");
  EXPECT_EQ(cluster.Truth("Ready"), "False");
  cluster.SetReady(1);
  cluster.SetPods();
  cluster.Sync();
  EXPECT_EQ(cluster.Truth("Ready"), "True");
  EXPECT_EQ(cluster.children["ConfigMap.v1"].size(), 1u);
}

TEST(Sync, ScalesToThreeToZeroAndBack) {
  HooksCluster cluster(Demo(1));
  cluster.Settle();
  std::string hostname = cluster.Hostname();
  for (int replicas : {3, 0, 1}) {
    cluster.Change("replicas", replicas);
    cluster.Settle();
    EXPECT_EQ(cluster.Deployment()["spec"]["replicas"], replicas);
    EXPECT_EQ(cluster.Hostname(), hostname) << "scaling rolls no pod";
    EXPECT_EQ(cluster.Truth("Ready"), "True") << replicas;
    EXPECT_EQ(cluster.children["PodDisruptionBudget.policy/v1"].size(), replicas > 1 ? 1u : 0u);
  }
}

TEST(Sync, SuspendedModelKeepsItsStatus) {
  HooksCluster cluster(Demo());
  cluster.Settle();
  Json groups = cluster.parent["status"]["kvGroups"];
  cluster.Change("suspend", true);
  cluster.Sync();
  cluster.SetReady(0);
  cluster.SetPods();
  cluster.Sync();
  EXPECT_EQ(cluster.Deployment()["spec"]["replicas"], 0);
  EXPECT_EQ(cluster.Reason("Ready"), "Suspended");
  EXPECT_EQ(CanonicalJson(cluster.parent["status"]["kvGroups"]), CanonicalJson(groups));
  ExpectGolden("suspended.json", PrettyStatus(cluster));
}

TEST(Sync, ChangedPlanStopsAtTheFirstPod) {
  HooksCluster cluster(Demo(3));
  cluster.Settle();
  cluster.Change("model", {{"source", {{"builtin", "demo"}}}, {"kv", {{"blockSize", 32}}}});
  cluster.Sync();
  EXPECT_EQ(cluster.Deployment()["spec"]["paused"], false);
  // The first new pod beside two old ones.
  cluster.snapshot.pods[0] = Pod("10.0.0.1", cluster.Hostname(), cluster.Digest(), "", 32);
  cluster.Sync();
  EXPECT_EQ(cluster.Deployment()["spec"]["paused"], true);
  EXPECT_EQ(cluster.Reason("Progressing"), "PlanChanged");
  EXPECT_THAT(cluster.Message("Progressing"), HasSubstr("block 32"));
  EXPECT_EQ(cluster.Truth("Ready"), "False");
  ExpectGolden("held.json", PrettyStatus(cluster));

  cluster.Change("rollout", {{"allowPlanChange", true}});
  cluster.Sync();
  EXPECT_EQ(cluster.Deployment()["spec"]["paused"], false);
}

TEST(Sync, HeldRolloutStaysHeldWhileItsPodsDoNotAnswer) {
  HooksCluster cluster(Demo(3));
  cluster.Settle();
  cluster.Change("model", {{"source", {{"builtin", "demo"}}}, {"kv", {{"blockSize", 32}}}});
  cluster.Sync();
  cluster.snapshot.pods[0] = Pod("10.0.0.1", cluster.Hostname(), cluster.Digest(), "", 32);
  cluster.Sync();
  const std::string message = cluster.Message("Progressing");
  cluster.snapshot.pods.erase(cluster.snapshot.pods.begin());
  cluster.Sync();
  EXPECT_EQ(cluster.Deployment()["spec"]["paused"], true);
  EXPECT_EQ(cluster.Message("Progressing"), message);
  // A third document has pods of its own to come, which nothing is known of.
  cluster.Change("model", {{"source", {{"builtin", "demo"}}}, {"kv", {{"blockSize", 64}}}});
  cluster.Sync();
  EXPECT_EQ(cluster.Deployment()["spec"]["paused"], false);
}

TEST(Sync, ChangedPlanStopsALeaderWorkerSetToo) {
  Json spec = Demo(3);
  spec["workload"] = "LeaderWorkerSet";
  HooksCluster cluster(spec);
  auto set = [&]() -> Json& {
    return cluster.children["LeaderWorkerSet.leaderworkerset.x-k8s.io/v1"]["default/demo"];
  };
  auto pod = [&](const std::string& address, int block_tokens) {
    return Pod(address, set()["spec"]["leaderWorkerTemplate"]["leaderTemplate"]["spec"]["hostname"],
               set()["metadata"]["annotations"][std::string(kDigestKey)], "", block_tokens);
  };
  auto partition = [&] {
    return set()["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"].value("partition", 0);
  };
  cluster.Sync();
  cluster.snapshot = {true, {pod("10.0.0.1", 16), pod("10.0.0.2", 16), pod("10.0.0.3", 16)}};
  cluster.Sync();
  cluster.Change("model", {{"source", {{"builtin", "demo"}}}, {"kv", {{"blockSize", 32}}}});
  cluster.Sync();
  EXPECT_EQ(partition(), 0);
  cluster.snapshot.pods[2] = pod("10.0.0.3", 32);
  cluster.Sync();
  EXPECT_EQ(cluster.Reason("Progressing"), "PlanChanged");
  EXPECT_EQ(partition(), 3);
  cluster.snapshot.pods.pop_back();
  cluster.Sync();
  EXPECT_EQ(partition(), 3) << "while the new pod does not answer";
}

TEST(Sync, HeldRolloutIsTakenBack) {
  HooksCluster cluster(Demo(3));
  cluster.Settle();
  std::string old_hostname = cluster.Hostname();
  cluster.Change("model", {{"source", {{"builtin", "demo"}}}, {"kv", {{"blockSize", 32}}}});
  cluster.Sync();
  cluster.snapshot.pods[0] = Pod("10.0.0.1", cluster.Hostname(), cluster.Digest(), "", 32);
  cluster.Sync();
  ASSERT_EQ(cluster.Deployment()["spec"]["paused"], true);
  cluster.Change("model", Demo()["model"]);
  cluster.Sync();
  EXPECT_EQ(cluster.Hostname(), old_hostname);
  EXPECT_EQ(cluster.Deployment()["spec"]["paused"], false) << "though the odd pod is still there";
}

TEST(Sync, DeletionEndsPodsBeforeTheRest) {
  HooksCluster cluster(Demo(2));
  cluster.Settle();
  cluster.finalizing = true;
  Reconciled result = cluster.Sync();
  EXPECT_FALSE(result.finalized);
  EXPECT_EQ(cluster.Deployment()["spec"]["replicas"], 0);
  EXPECT_FALSE(cluster.children["Service.v1"].empty());
  cluster.SetReady(0);
  result = cluster.Sync();
  EXPECT_FALSE(result.finalized) << "pods still answer";
  EXPECT_LT(result.resync_seconds, 10) << "nothing but the next look shows that they ended";
  cluster.snapshot.pods.clear();
  result = cluster.Sync();
  EXPECT_TRUE(result.finalized);
  EXPECT_THAT(result.children, IsEmpty());
}

TEST(Sync, ModelThatWasNeverAcceptedIsDeletedAtOnce) {
  Json spec = Demo();
  spec["model"]["nonsense"] = 1;
  HooksCluster cluster(spec);
  cluster.Sync();
  cluster.finalizing = true;
  EXPECT_TRUE(cluster.Sync().finalized);
}

TEST(Sync, LooksAgainSoonUntilThePodsThatAreWantedWereAsked) {
  HooksCluster cluster(Demo(2));
  cluster.Settle();
  EXPECT_GE(cluster.Sync().resync_seconds, 60);
  cluster.snapshot.pods.pop_back();
  EXPECT_LT(cluster.Sync().resync_seconds, 10);
}

TEST(Sync, EveryConditionIsJudgedInTheOrderOfTheList) {
  HooksCluster cluster(Demo());
  Reconciled result = cluster.Sync();
  ASSERT_EQ(result.truths.size(), kConditionTypes.size());
  for (size_t i = 0; i < kConditionTypes.size(); ++i) {
    const Json& condition = cluster.parent["status"]["conditions"][i];
    EXPECT_EQ(condition["type"], kConditionTypes[i]);
    EXPECT_EQ(condition["status"], Name(result.truths[i]));
  }
}

TEST(Sync, ConditionsKeepTheirTimes) {
  HooksCluster cluster(Demo());
  cluster.Settle();
  Json before = cluster.parent["status"];
  cluster.now += 3600;
  cluster.Sync();
  EXPECT_EQ(cluster.parent["status"], before);
}

TEST(Sync, SameInputSameBytesInAnyOrder) {
  HooksCluster cluster(Demo(3));
  cluster.nodes["a"] = {{"status", {{"allocatable", {{"cpu", "8"}, {"memory", "32Gi"}}}}}};
  cluster.nodes["b"] = {{"status", {{"allocatable", {{"cpu", "16"}, {"memory", "64Gi"}}}}}};
  cluster.Settle();
  std::string body =
      Reconcile(cluster.Observe(), cluster.snapshot, cluster.now, cluster.settings, nullptr)
          .Body(false);
  HookMetrics metrics;
  VerdictMemo memo(metrics);
  std::mt19937 random(20'261'130);
  for (int round = 0; round < 20; ++round) {
    Json request = Shuffled(cluster.Request(), random);
    std::shuffle(cluster.snapshot.pods.begin(), cluster.snapshot.pods.end(), random);
    EXPECT_EQ(body, Reconcile(HooksCluster::Observe(request.dump()), cluster.snapshot, cluster.now,
                              cluster.settings, &memo)
                        .Body(false))
        << "round " << round;
  }
}

TEST(Sync, MissingKindTurnsItsFeatureOff) {
  Json spec = Demo();
  spec["scaling"] = {{"max", 3}, {"provider", "keda"}};
  HooksCluster cluster(spec);
  cluster.children.erase("ScaledObject.keda.sh/v1alpha1");
  cluster.children.erase("PodMonitor.monitoring.coreos.com/v1");
  EXPECT_THAT(HooksCluster::Names(cluster.Sync()), Contains("Deployment/demo"));
  EXPECT_EQ(cluster.Reason("Degraded"), "MissingCRD");
  EXPECT_THAT(cluster.Message("Degraded"), HasSubstr("ScaledObject"));
}

TEST(Sync, LeaderWorkerSetWithoutItsKindIsRefused) {
  Json spec = Demo();
  spec["workload"] = "LeaderWorkerSet";
  HooksCluster cluster(spec);
  cluster.children.erase("LeaderWorkerSet.leaderworkerset.x-k8s.io/v1");
  EXPECT_THAT(cluster.Sync().children, IsEmpty());
  EXPECT_EQ(cluster.Reason("Accepted"), "MissingCRD");
}

TEST(Sync, DownloadIntoAClaimComesBeforeThePods) {
  Json spec = {{"model", {{"source", {{"path", "/models/m.gguf"}}}}},
               {"source", {{"uri", "hf://org/m@1"}, {"cache", {{"pvc", {{"size", "10Gi"}}}}}}}};
  HooksCluster cluster(spec);
  cluster.settings.download_image = "downloader:1";
  std::vector<std::string> names = HooksCluster::Names(cluster.Sync());
  EXPECT_THAT(names, Contains("PersistentVolumeClaim/demo-models"));
  EXPECT_EQ(cluster.Reason("SourceReady"), "Downloading");
  EXPECT_EQ(cluster.Deployment()["spec"]["replicas"], 0);
  for (auto& [key, job] : cluster.children["Job.batch/v1"].items()) {
    job["status"]["conditions"] = {{{"type", "Complete"}, {"status", "True"}}};
  }
  cluster.Sync();
  EXPECT_EQ(cluster.Deployment()["spec"]["replicas"], 1);
}

TEST(Sync, SourceWithoutDownloaderIsRefused) {
  Json spec = {{"model", {{"source", {{"path", "/models/m.gguf"}}}}},
               {"source", {{"uri", "hf://org/m"}}}};
  HooksCluster cluster(spec);
  EXPECT_THAT(cluster.Sync().children, IsEmpty());
  EXPECT_EQ(cluster.Reason("Accepted"), "SourceUnsupported");
}

}  // namespace
}  // namespace ashlar::hooks
