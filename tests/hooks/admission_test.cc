// What the admission webhook refuses, and what it must let pass.
#include "operator-hooks/admission.h"

#include <gmock/gmock.h>

#include "device/row.h"
#include "operator-hooks/hook_server.h"
#include "probe/platform.h"
#include "support/hooks_cluster.h"

namespace ashlar::hooks {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

Json Demo() { return {{"model", {{"source", {{"builtin", "demo"}}}}}}; }

Json OddBlock() {
  Json spec = Demo();
  spec["accelerator"] = {{"vendor", "cpu"}};
  spec["model"]["kv"] = {{"blockSize", 24}};
  spec["model"]["backends"] = {{"default", {{"use", "CPU_PAGED"}}}};
  return spec;
}

class Admission : public testing::Test {
 protected:
  static Json Object(const Json& spec) { return HooksCluster(spec).parent; }

  // The member "response" of the answer.
  Json Review(const Json& request) {
    Json review = {
        {"apiVersion", "admission.k8s.io/v1"}, {"kind", "AdmissionReview"}, {"request", request}};
    review["request"]["uid"] = "u-7";
    HookAnswer answer = service_.Validate(review.dump());
    EXPECT_EQ(answer.status, 200) << answer.body;
    Json json = MustParse(answer.body);
    EXPECT_EQ(json["apiVersion"], "admission.k8s.io/v1");
    EXPECT_EQ(json["kind"], "AdmissionReview");
    EXPECT_EQ(json["response"]["uid"], "u-7");
    return json["response"];
  }
  Json Create(const Json& spec) {
    return Review({{"operation", "CREATE"}, {"object", Object(spec)}, {"oldObject", nullptr}});
  }
  Json Update(const Json& before, const Json& after) {
    return Review({{"operation", "UPDATE"}, {"object", after}, {"oldObject", before}});
  }

  Settings settings_;
  SnapshotStore snapshots_;
  HookMetrics metrics_;
  HookService service_{settings_, snapshots_, metrics_, [] { return int64_t{1'800'000'000}; }};
};

TEST_F(Admission, LetsAModelPass) {
  EXPECT_EQ(Create(Demo()), Json({{"uid", "u-7"}, {"allowed", true}}));
}

TEST_F(Admission, RefusesAMistakeInTheConditionsWords) {
  Json spec = Demo();
  spec["model"]["limits"] = {{"sequences", 64}, {"batchTokens", 8}};
  Json response = Create(spec);
  EXPECT_EQ(response["allowed"], false);
  HooksCluster cluster(spec);
  cluster.Sync();
  EXPECT_EQ(response["status"]["reason"], cluster.Reason("Accepted"));
  EXPECT_EQ(response["status"]["message"], cluster.Message("Accepted"));
  EXPECT_EQ(response["status"]["code"], 422);
}

TEST_F(Admission, RefusesWhatNoRowTakesWithTheRemedy) {
  Json response = Create(OddBlock());
  EXPECT_EQ(response["allowed"], false);
  EXPECT_EQ(response["status"]["reason"], "NoNodeCanServe");
  HooksCluster cluster(OddBlock());
  cluster.nodes["a"] = {{"status", {{"allocatable", {{"cpu", "16"}, {"memory", "64Gi"}}}}}};
  cluster.Sync();
  const std::string said = cluster.Message("Accepted"), prefix = "cpu (1 nodes): ";
  ASSERT_THAT(said, StartsWith(prefix));
  EXPECT_EQ(response["status"]["message"],
            "cpu-avx2, cpu-avx512, cpu-amx: " + said.substr(prefix.size()));
}

TEST_F(Admission, NodesMayComeAfterTheirModels) {
  Json spec = Demo();
  spec["accelerator"] = {{"vendor", "amd"}};
  spec["model"]["platform"] = "hip";
  EXPECT_EQ(Create(spec)["allowed"], true) << "no AMD node is known of";
  spec = Demo();
  spec["accelerator"] = {{"vendor", "cpu"}};
  spec["model"]["kv"] = {{"memory", "2TiB"}};
  EXPECT_EQ(Create(spec)["allowed"], true) << "no profile has as much memory";
}

TEST_F(Admission, WhatIsStoredCanBeScaledSuspendedAndDeleted) {
  Json before = Object(OddBlock()), after = before;
  after["metadata"].erase("finalizers");
  after["metadata"]["labels"] = {{"a", "b"}};
  after["spec"]["replicas"] = 3;
  after["spec"]["suspend"] = true;
  EXPECT_EQ(Update(before, after)["allowed"], true);
  EXPECT_EQ(Review({{"operation", "DELETE"}, {"oldObject", before}})["allowed"], true);
  after["spec"]["model"]["numerics"] = "invariant";
  EXPECT_EQ(Update(before, after)["allowed"], false);
  EXPECT_EQ(Update(before, Object(Demo()))["allowed"], true) << "a mended spec";
}

TEST_F(Admission, SourceWithoutADownloaderIsRefused) {
  Json response = Create(
      {{"model", {{"source", {{"path", "/models/m"}}}}}, {"source", {{"uri", "hf://org/name"}}}});
  EXPECT_EQ(response["status"]["reason"], "SourceUnsupported");
  EXPECT_THAT(response["status"]["message"], HasSubstr("hooks.downloadImage"));
}

TEST_F(Admission, BodiesThatAreNoReviewAreRefused) {
  for (const char* body : {"", "{}", "[]", R"({"kind":"AdmissionReview"})",
                           R"({"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"})",
                           R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"})"}) {
    HookAnswer answer = service_.Validate(body);
    EXPECT_EQ(answer.status, 400) << body;
    EXPECT_FALSE(MustParse(answer.body)["problems"].empty());
  }
}

bool RunsOn(const AttentionRow& row, const DeviceInfo& device) {
  if (device.platform != row.platform) return false;
  const Capability& has = device.capability;
  if (row.capability_unit == CapabilityUnit::kAny || row.capability_unit != has.unit) return true;
  if (has.unit == CapabilityUnit::kCpu)
    return (has.value & row.capability_min) == row.capability_min;
  return has.value >= row.capability_min &&
         (row.capability_max == 0 || has.value <= row.capability_max);
}

// Else a spec that forces the row would be refused though some device carries it out.
TEST(JudgeAnywhere, EveryRowHasAPlatformThatItRunsOn) {
  ASSERT_FALSE(KnownRows().empty());
  for (const AttentionRow& row : KnownRows()) {
    bool found = false;
    for (const std::string& name : PlatformProfiles()) {
      const Platform platform = ReadPlatform(name).value();
      for (const DeviceInfo& device : platform.devices) found = found || RunsOn(row, device);
    }
    EXPECT_TRUE(found) << row.name;
  }
}

}  // namespace
}  // namespace ashlar::hooks
