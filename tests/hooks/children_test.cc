// What the children look like, beyond the golden first sync.
#include <gmock/gmock.h>

#include "operator-hooks/desired.h"
#include "operator-hooks/pod_template.h"
#include "support/hooks_cluster.h"

namespace ashlar::hooks {
namespace {

using testing::HasSubstr;

Json Demo(const Json& more = Json::object()) {
  Json spec = {{"model", {{"source", {{"builtin", "demo"}}}}}};
  spec.update(more);
  return spec;
}

Json Nvidia(const Json& more = Json::object()) {
  Json spec = {{"model", {{"source", {{"path", "/models/m"}}}, {"platform", "cuda"}}},
               {"source", {{"uri", "pvc://weights/some/m"}}},
               {"accelerator", {{"vendor", "nvidia"}}}};
  spec.update(more);
  return spec;
}

struct Made {
  explicit Made(const Json& spec) : cluster(spec) {
    result = cluster.Sync();
    EXPECT_EQ(cluster.Truth("Accepted"), "True") << cluster.Message("Accepted");
  }
  Json Child(const std::string& kind, const std::string& name = "demo") {
    for (const std::string& text : result.children) {
      Json child = MustParse(text);
      if (child["kind"] == kind && child["metadata"]["name"] == name) return child;
    }
    ADD_FAILURE() << "no " << kind << " " << name;
    return Json();
  }
  Json Pod() { return Child("Deployment")["spec"]["template"]; }
  Json Container() { return Pod()["spec"]["containers"][0]; }
  // The one that the pods name.
  Json ClaimTemplate() {
    return Child("ResourceClaimTemplate",
                 Pod()["spec"]["resourceClaims"][0]["resourceClaimTemplateName"]);
  }

  HooksCluster cluster;
  Reconciled result;
};

TEST(PodTemplate, PassesTheRestrictedStandard) {
  Made made(Nvidia());
  Json pod = made.Pod()["spec"];
  EXPECT_EQ(pod["securityContext"]["runAsNonRoot"], true);
  EXPECT_EQ(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
  Json security = made.Container()["securityContext"];
  EXPECT_EQ(security["allowPrivilegeEscalation"], false);
  EXPECT_EQ(security["readOnlyRootFilesystem"], true);
  EXPECT_EQ(security["capabilities"]["drop"], Json({"ALL"}));
  for (const char* host : {"hostNetwork", "hostIPC", "hostPID"}) EXPECT_FALSE(pod.contains(host));
}

TEST(PodTemplate, EveryProbeHasOneHandlerAndNoneWaitsForLoading) {
  Made made(Demo());
  for (const char* probe : {"startupProbe", "readinessProbe", "livenessProbe"}) {
    Json json = made.Container()[probe];
    EXPECT_TRUE(json.contains("httpGet")) << probe;
    EXPECT_FALSE(json.contains("exec") || json.contains("tcpSocket")) << probe;
  }
  EXPECT_EQ(made.Container()["startupProbe"]["httpGet"]["path"], "/livez");
  EXPECT_EQ(made.Container()["livenessProbe"]["httpGet"]["path"], "/livez");
  EXPECT_EQ(made.Child("Deployment")["spec"]["progressDeadlineSeconds"], 1800 + 300);
}

TEST(PodTemplate, GraceCoversPreStopLameDuckAndDrain) {
  EXPECT_EQ(Made(Demo()).Pod()["spec"]["terminationGracePeriodSeconds"], 15 + 5 + 45);
  Json spec = Demo({{"drain", {{"preStopSeconds", 1}, {"timeoutSeconds", 100}}}});
  spec["model"]["server"] = {{"lameDuckSeconds", 2}, {"drainSeconds", 60}};
  Made made(spec);
  EXPECT_EQ(made.Pod()["spec"]["terminationGracePeriodSeconds"], 1 + 2 + 100);
  EXPECT_EQ(made.Container()["lifecycle"]["preStop"]["sleep"]["seconds"], 1);
  EXPECT_FALSE(Made(Demo({{"drain", {{"preStopSeconds", 0}}}})).Container().contains("lifecycle"));
}

TEST(PodTemplate, ServiceNamedLikeTheProgramSetsNoVariable) {
  EXPECT_EQ(Made(Demo()).Pod()["spec"]["enableServiceLinks"], false);
  EXPECT_EQ(Made(Demo()).Pod()["spec"]["automountServiceAccountToken"], false);
}

TEST(PodTemplate, DevicesAndSharedMemory) {
  Json spec = Nvidia();
  spec["accelerator"]["count"] = 8;
  Made made(spec);
  Json resources = made.Container()["resources"];
  EXPECT_EQ(resources["limits"]["nvidia.com/gpu"], "8");
  EXPECT_EQ(resources["requests"]["nvidia.com/gpu"], "8");
  EXPECT_EQ(resources["requests"]["cpu"], "10");
  Json pod = made.Pod();
  for (const Json& volume : pod["spec"]["volumes"]) {
    if (volume["name"] != "shm") continue;
    EXPECT_EQ(volume["emptyDir"]["medium"], "Memory");
    EXPECT_EQ(volume["emptyDir"]["sizeLimit"], "2048Mi");
  }
  EXPECT_FALSE(Made(Demo()).Container()["resources"].contains("limits"));
}

TEST(PodTemplate, ClaimIsMountedReadOnlyAtItsPath) {
  Made made(Nvidia());
  bool mounted = false;
  Json container = made.Container();
  for (const Json& mount : container["volumeMounts"]) {
    if (mount["name"] != "models") continue;
    mounted = true;
    EXPECT_EQ(mount["mountPath"], "/models");
    EXPECT_EQ(mount["readOnly"], true);
    EXPECT_EQ(mount["subPath"], "some/m");
  }
  EXPECT_TRUE(mounted);
}

TEST(PodTemplate, ProductsBecomeNodeAffinity) {
  Json spec = Nvidia();
  spec["accelerator"]["products"] = {"NVIDIA-H200"};
  spec["accelerator"]["minMemoryGiB"] = 80;
  Json term = Made(spec).Pod()["spec"]["affinity"]["nodeAffinity"]
                              ["requiredDuringSchedulingIgnoredDuringExecution"]
                              ["nodeSelectorTerms"][0]["matchExpressions"];
  EXPECT_EQ(term[0]["key"], "nvidia.com/gpu.product");
  EXPECT_EQ(term[1]["values"], Json({"81919"}));
}

TEST(PodTemplate, AmdDevicesBringTheirGroups) {
  HooksCluster cluster({{"model", {{"source", {{"path", "/models/m"}}}, {"platform", "hip"}}},
                        {"source", {{"uri", "pvc://weights"}}},
                        {"accelerator", {{"vendor", "amd"}}}});
  cluster.settings.device_groups = {44, 109};
  cluster.Sync();
  Json pod = cluster.Deployment()["spec"]["template"]["spec"];
  EXPECT_EQ(pod["securityContext"]["supplementalGroups"], Json({44, 109}));
  EXPECT_EQ(pod["containers"][0]["image"], cluster.settings.image_amd);
  EXPECT_EQ(pod["containers"][0]["resources"]["limits"]["amd.com/gpu"], "1");
}

TEST(PodTemplate, DynamicClaimsReplaceTheResource) {
  Json spec = Nvidia();
  spec["accelerator"]["claim"] = {{"deviceClassName", "gpu.nvidia.com"},
                                  {"selectors", {"device.driver == 'gpu.nvidia.com'"}}};
  Made made(spec);
  EXPECT_EQ(made.Container()["resources"]["claims"][0]["name"], "devices");
  EXPECT_FALSE(made.Container()["resources"].contains("limits"));
  Json request = made.ClaimTemplate()["spec"]["spec"]["devices"]["requests"][0]["exactly"];
  EXPECT_EQ(request["deviceClassName"], "gpu.nvidia.com");
  EXPECT_EQ(request["count"], 1);
}

TEST(PodTemplate, AnotherClaimIsAnotherObject) {
  Json spec = Nvidia();
  spec["accelerator"]["claim"] = {{"deviceClassName", "gpu.nvidia.com"}};
  Made before(spec);
  spec["accelerator"]["claim"]["deviceClassName"] = "other";
  EXPECT_NE(Made(spec).ClaimTemplate()["metadata"]["name"],
            before.ClaimTemplate()["metadata"]["name"]);
}

TEST(PodTemplate, AClaimsClassSaysWhoseImageRuns) {
  for (const char* vendor : {"nvidia", "amd"}) {
    Json claim = {{"deviceClassName", std::string("gpu.") + vendor + ".com"}};
    Made made(Demo({{"accelerator", {{"claim", claim}}}}));
    const Settings& settings = made.cluster.settings;
    EXPECT_EQ(made.Container()["image"],
              vendor == std::string("amd") ? settings.image_amd : settings.image_nvidia);
    EXPECT_EQ(made.ClaimTemplate()["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"],
              1);
  }
}

TEST(PodTemplate, WishesOfTheUserAreMerged) {
  Made made(Demo({{"pod",
                   {{"nodeSelector", {{"pool", "a"}}},
                    {"labels", {{"team", "x"}}},
                    {"tolerations", {{{"key", "gpu"}, {"operator", "Exists"}}}},
                    {"resources", {{"requests", {{"cpu", 3}}}, {"limits", {{"memory", "9Gi"}}}}},
                    {"extraVolumes",
                     {{{"mountPath", "/keys"},
                       {"readOnly", true},
                       {"volume", {{"secret", {{"secretName", "keys"}}}}}}}}}},
                  {"router", {{"enabled", true}, {"pool", "p"}}}}));
  Json pod = made.Pod();
  EXPECT_EQ(pod["metadata"]["labels"]["team"], "x");
  EXPECT_EQ(pod["metadata"]["labels"]["llm-d.ai/engine-type"], "vllm");
  EXPECT_EQ(pod["metadata"]["labels"]["ashlar.dev/pool"], "p");
  EXPECT_EQ(pod["spec"]["nodeSelector"]["pool"], "a");
  EXPECT_EQ(pod["spec"]["tolerations"][0]["key"], "gpu");
  EXPECT_EQ(made.Container()["resources"]["requests"]["cpu"], "3");
  EXPECT_EQ(made.Container()["resources"]["requests"]["memory"], "9Gi");
  EXPECT_EQ(pod["spec"]["volumes"].back()["secret"]["secretName"], "keys");
}

TEST(Rollout, ScarceDevicesAreNotSurgedOver) {
  Json gpu = Made(Nvidia()).Child("Deployment")["spec"]["strategy"]["rollingUpdate"];
  EXPECT_EQ(gpu, Json({{"maxSurge", 0}, {"maxUnavailable", 1}}));
  Json cpu = Made(Demo()).Child("Deployment")["spec"]["strategy"]["rollingUpdate"];
  EXPECT_EQ(cpu, Json({{"maxSurge", 1}, {"maxUnavailable", 0}}));
  Json one = Made(Nvidia({{"rollout", {{"maxUnavailable", 0}}}}))
                 .Child("Deployment")["spec"]["strategy"]["rollingUpdate"];
  EXPECT_EQ(one, Json({{"maxSurge", 1}, {"maxUnavailable", 0}})) << "both 0 would never proceed";
}

TEST(NetworkPolicy, OpensThePortToWhomTheModelNames) {
  HooksCluster cluster(
      Demo({{"network", {{"allowFrom", {{{"namespaceSelector", Json::object()}}}}}}}));
  cluster.settings.monitoring_namespace = "monitoring";
  cluster.Sync();
  Json rule =
      cluster.children["NetworkPolicy.networking.k8s.io/v1"]["default/demo"]["spec"]["ingress"][0];
  EXPECT_EQ(rule["from"].size(), 2u);
  EXPECT_EQ(rule["from"][1]["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"],
            "monitoring");
}

TEST(Autoscalers, ScaleTheModelAndNotItsDeployment) {
  Made hpa(Demo({{"scaling", {{"min", 1}, {"max", 4}, {"provider", "hpa"}}}}));
  EXPECT_EQ(hpa.Child("HorizontalPodAutoscaler")["spec"]["scaleTargetRef"]["kind"],
            "InferenceModel");
  Made keda(Demo({{"scaling", {{"min", 0}, {"max", 4}, {"provider", "keda"}}}}));
  Json spec = keda.Child("ScaledObject")["spec"];
  EXPECT_EQ(spec["minReplicaCount"], 0);
  EXPECT_GE(spec["initialCooldownPeriod"].get<int>(), 1800) << "not while it loads";
  EXPECT_EQ(spec["triggers"][0]["metadata"]["ignoreNullValues"], "false");
  EXPECT_THAT(spec["triggers"][0]["metadata"]["query"].get<std::string>(),
              HasSubstr("namespace=\"default\""));
}

TEST(LeaderWorkerSet, OneGroupAReplicaAndOnlyItsLeaderIsRouted) {
  Json spec = Nvidia({{"workload", "LeaderWorkerSet"}, {"router", {{"enabled", true}}}});
  spec["model"]["parallel"] = {{"tensor", 4}, {"pipeline", 2}};
  Made made(spec);
  Json set = made.Child("LeaderWorkerSet")["spec"]["leaderWorkerTemplate"];
  EXPECT_EQ(set["size"], 2);
  EXPECT_TRUE(set["leaderTemplate"]["metadata"]["labels"].contains("llm-d.ai/engine-type"));
  EXPECT_FALSE(set["workerTemplate"]["metadata"]["labels"].contains("llm-d.ai/engine-type"));
  EXPECT_EQ(set["workerTemplate"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"],
            "4");
  EXPECT_EQ(made.Child("Service")["spec"]["selector"]["leaderworkerset.sigs.k8s.io/worker-index"],
            "0");
}

TEST(ConditionTable, KnowsEachCheckOfTheRuntime) {
  HooksCluster cluster(Demo());
  cluster.Sync();
  for (const CheckInfo& info : kChecks) {
    if (info.check == ReadyCheck::kSpec) continue;  // decided before there is a pod
    cluster.SetReady(0);
    cluster.SetPods(std::string(info.name));
    cluster.Sync();
    EXPECT_EQ(cluster.Reason(std::string(info.condition)), info.reason) << info.name;
    EXPECT_EQ(cluster.Reason("Ready"), info.reason) << info.name;
  }
}

}  // namespace
}  // namespace ashlar::hooks
