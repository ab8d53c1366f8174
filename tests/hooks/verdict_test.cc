// Admission in the runtime's own words, against the nodes that are there.
#include "operator-hooks/verdict.h"

#include <gmock/gmock.h>

#include "plan/yaml.h"
#include "probe/profiles.h"
#include "spec/spec.h"
#include "support/hooks_cluster.h"

namespace ashlar::hooks {
namespace {

using testing::HasSubstr;

Json GpuNode(const std::string& resource, const Json& labels) {
  return {{"metadata", {{"labels", labels}}},
          {"status", {{"allocatable", {{"cpu", "64"}, {"memory", "512Gi"}, {resource, "8"}}}}}};
}

Json H200() { return GpuNode("nvidia.com/gpu", {{"nvidia.com/gpu.product", "NVIDIA-H200"}}); }
Json CpuNode() {
  return {{"status", {{"allocatable", {{"cpu", "16"}, {"memory", "64Gi"}, {"pods", "110"}}}}}};
}

// Geometry of a small Llama, stated in the document.
Json Llama() {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"hidden_size", 576},
          {"intermediate_size", 1536},
          {"num_hidden_layers", 4},
          {"num_attention_heads", 9},
          {"num_key_value_heads", 3},
          {"head_dim", 64},
          {"vocab_size", 49152},
          {"max_position_embeddings", 8192},
          {"rms_norm_eps", 1e-5},
          {"rope_theta", 100000},
          {"tie_word_embeddings", true},
          {"torch_dtype", "bfloat16"}};
}

Json WithGeometry() {
  return {{"model", {{"source", {{"path", "/models/m"}, {"config", Llama()}}}}},
          {"source", {{"uri", "pvc://weights/m"}}}};
}

TEST(Verdict, GeometryUnknownChecksTheSpecAlone) {
  Json spec = WithGeometry();
  spec["model"]["source"].erase("config");
  HooksCluster cluster(spec);
  cluster.nodes["a"] = CpuNode();
  cluster.Sync();
  EXPECT_EQ(cluster.Truth("Accepted"), "True");
  EXPECT_EQ(cluster.Reason("Accepted"), "GeometryUnknown");
  EXPECT_THAT(cluster.Message("Accepted"), HasSubstr("--emit-config"));
  EXPECT_TRUE(cluster.HasDeployment());
}

TEST(Verdict, StatedGeometryIsPlannedForTheNodes) {
  HooksCluster cluster(WithGeometry());
  cluster.nodes["a"] = CpuNode();
  cluster.nodes["b"] = CpuNode();
  cluster.Sync();
  EXPECT_EQ(cluster.Reason("Accepted"), "Accepted") << cluster.Message("Accepted");
  Json plan = cluster.parent["status"]["plan"];
  ASSERT_EQ(plan.size(), 1u) << "nodes that are alike are one kind";
  EXPECT_EQ(plan[0]["count"], 2);
  EXPECT_EQ(plan[0]["fits"], true);
  EXPECT_EQ(plan[0]["backends"], "full_attention=CPU_PAGED");
}

TEST(Verdict, BlockSizeThatNoBackendTakesIsRefusedWithTheRowsWords) {
  Json spec = WithGeometry();
  spec["model"]["kv"] = {{"blockSize", 24}};
  spec["model"]["backends"] = {{"default", {{"use", "CPU_PAGED"}}}};
  spec["accelerator"] = {{"vendor", "cpu"}};
  HooksCluster cluster(spec);
  cluster.nodes["a"] = CpuNode();
  EXPECT_TRUE(cluster.Sync().children.empty());
  EXPECT_EQ(cluster.Reason("Ready"), "NoNodeCanServe");
  EXPECT_THAT(cluster.Message("Ready"), HasSubstr("spec.model.kv.blockSize: 24 is not usable"));
  EXPECT_THAT(cluster.Message("Ready"), HasSubstr("CPU_PAGED needs a multiple of 16"));
  EXPECT_THAT(cluster.Message("Ready"), HasSubstr("cpu (1 nodes)"));
  cluster.Change("model", WithGeometry()["model"]);
  cluster.Sync();
  EXPECT_EQ(cluster.Truth("Accepted"), "True") << "a mended spec heals";
}

TEST(Verdict, DeviceThatNoNodeOffersIsNamedWithWhatThereIs) {
  Json spec = WithGeometry();
  spec["accelerator"] = {{"vendor", "amd"}};
  HooksCluster cluster(spec);
  cluster.nodes["a"] = H200();
  EXPECT_TRUE(cluster.Sync().children.empty());
  EXPECT_EQ(
      cluster.Message("Accepted"),
      "spec.accelerator: no node offers 1 amd.com/gpu: a node offers at most 8 nvidia.com/gpu; "
      "ask for what a node offers, or add a node (and its device plugin)");
}

TEST(Verdict, NodesWithoutLabelsLeaveTheDecisionToThePods) {
  Json spec = WithGeometry();
  spec["accelerator"] = {{"vendor", "amd"}};
  HooksCluster cluster(spec);
  cluster.nodes["a"] = GpuNode("amd.com/gpu", Json::object());
  cluster.Sync();
  EXPECT_EQ(cluster.Truth("Accepted"), "True");
  EXPECT_EQ(cluster.Reason("Accepted"), "NodesUnknown");
}

TEST(Verdict, UnknownArchitectureIsNamed) {
  Json spec = WithGeometry();
  spec["model"]["source"]["config"]["model_type"] = "unheard_of";
  HooksCluster cluster(spec);
  cluster.nodes["a"] = CpuNode();
  EXPECT_TRUE(cluster.Sync().children.empty());
  EXPECT_EQ(cluster.Reason("Accepted"), "SpecInvalid");
  EXPECT_THAT(cluster.Message("Accepted"), HasSubstr("unheard_of"));
  EXPECT_THAT(cluster.Message("Accepted"), HasSubstr("spec.model.source.config"));
  EXPECT_THAT(cluster.Message("Accepted"), testing::Not(HasSubstr("custom-resource")));
}

TEST(Verdict, CapturedPlatformsStandBesideTheNodes) {
  HooksCluster cluster(WithGeometry());
  cluster.settings.platforms = {*FindProfile("cpu-avx512")};
  cluster.Sync();
  EXPECT_EQ(cluster.parent["status"]["plan"][0]["nodes"], "cpu-avx512");
}

TEST(Verdict, DigestIsTheFiles) {
  Json spec = WithGeometry();
  std::string file = YamlOf(spec["model"]);
  HooksCluster cluster(spec);
  cluster.Sync();
  std::string digest = LoadSpec(file, "model.yaml").value().digest;
  EXPECT_EQ(cluster.parent["status"]["modelDigest"], digest);
  const Json& map = cluster.children["ConfigMap.v1"]["default/demo-" + digest.substr(0, 10)];
  Result<Spec> stored = LoadSpec(map["data"]["model.yaml"].get<std::string>(), "model.yaml");
  ASSERT_TRUE(stored) << Text(stored.problems());
  EXPECT_EQ(stored->digest, digest);
}

TEST(Verdict, MemoChangesNothing) {
  HooksCluster cluster(WithGeometry());
  cluster.nodes["a"] = CpuNode();
  HookMetrics metrics;
  VerdictMemo memo(metrics);
  Observed observed = cluster.Observe();
  auto first = memo.For(observed.model, observed.nodes, cluster.settings);
  EXPECT_EQ(first, memo.For(observed.model, observed.nodes, cluster.settings));
  observed.nodes.clear();
  EXPECT_NE(first, memo.For(observed.model, observed.nodes, cluster.settings));
  std::string page = metrics.Text({});
  EXPECT_THAT(page, HasSubstr("lookups_total{result=\"hit\"} 1"));
  EXPECT_THAT(page, HasSubstr("lookups_total{result=\"miss\"} 2"));
}

}  // namespace
}  // namespace ashlar::hooks
