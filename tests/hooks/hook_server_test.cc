// The hooks as Metacontroller meets them: bodies that it really sent, and bodies that nobody should
// send.
#include "operator-hooks/hook_server.h"

#include <gmock/gmock.h>

#include <sstream>

#include "base/mapped_file.h"
#include "support/hooks_cluster.h"

namespace ashlar::hooks {
namespace {

using testing::HasSubstr;

struct Recorded {
  std::string path;
  Json request;
};

// Requests that Metacontroller 4.17 sent for a kind of a test's own.
std::vector<Recorded> RecordedRequests() {
  std::istringstream lines(
      ReadTextFile(std::string(ASHLAR_SOURCE_DIR) + "/tests/hooks/metacontroller_requests.jsonl",
                   1 << 20)
          .value());
  std::vector<Recorded> requests;
  for (std::string line; std::getline(lines, line);) {
    Json json = MustParse(line);
    requests.push_back({json["path"], json["request"]});
  }
  return requests;
}

class HookServer : public testing::Test {
 protected:
  HookAnswer Answer(const Recorded& recorded) {
    std::string body = recorded.request.dump();
    return recorded.path == "/customize" ? service_.Customize(body) : service_.Sync(body);
  }

  Settings settings_;
  SnapshotStore snapshots_;
  HookMetrics metrics_;
  HookService service_{settings_, snapshots_, metrics_, [] { return int64_t{1'800'000'000}; }};
};

TEST_F(HookServer, RefusesAnotherKindByName) {
  for (const Recorded& recorded : RecordedRequests()) {
    if (recorded.path != "/sync") continue;
    HookAnswer answer = Answer(recorded);
    EXPECT_EQ(answer.status, 400);
    EXPECT_EQ(
        MustParse(answer.body)["error"],
        "parent.kind: Widget of test.example/v1: InferenceModel of ashlar.dev/v1alpha1; point "
        "the controller's parentResource at inferencemodels");
  }
}

TEST_F(HookServer, AnswersWhatMetacontrollerReallySends) {
  std::vector<Recorded> requests = RecordedRequests();
  ASSERT_GE(requests.size(), 6u);
  for (Recorded& recorded : requests) {
    SCOPED_TRACE(recorded.path);
    Json& parent = recorded.request["parent"];
    parent["apiVersion"] = "ashlar.dev/v1alpha1";
    parent["kind"] = "InferenceModel";
    parent["spec"] = {{"model", {{"source", {{"builtin", "demo"}}}}}, {"replicas", 2}};
    if (recorded.request.contains("children"))
      recorded.request["children"]["ConfigMap.v1"] = Json::object();
    HookAnswer answer = Answer(recorded);
    if (answer.status == 429) {  // pods are there that were not asked yet
      EXPECT_EQ(answer.retry_after_seconds, 2);
      snapshots_.Put({"default", "w1"}, {});
      answer = Answer(recorded);
    }
    ASSERT_EQ(answer.status, 200) << answer.body;
    Json body = MustParse(answer.body);
    if (recorded.path == "/customize") {
      EXPECT_EQ(body["relatedResources"][0]["resource"], "nodes");
      continue;
    }
    EXPECT_TRUE(body["status"]["conditions"].is_array());
    // Strict decoding on the other side: these and no other members.
    for (const auto& [key, value] : body.items()) {
      EXPECT_TRUE(key == "status" || key == "children" || key == "resyncAfterSeconds" ||
                  (key == "finalized" && recorded.path == "/finalize"))
          << key;
    }
    for (const Json& child : body["children"]) {
      EXPECT_EQ(child["metadata"]["namespace"], "default");
      EXPECT_TRUE(child["metadata"]["name"].get<std::string>().starts_with("w1")) << child;
      EXPECT_EQ(child["metadata"]["labels"]["ashlar.dev/model"], "w1");
      EXPECT_FALSE(child.contains("status"));
    }
  }
}

TEST_F(HookServer, BodiesThatAreNoRequestAreRefusedInFourParts) {
  const std::string deep(100'000, '[');
  for (const std::string& body :
       {std::string(""), std::string("null"), std::string("[]"), std::string("{}"),
        std::string("{\"parent\":null}"), std::string("{\"parent\":[]}"),
        std::string("{\"parent\":{\"kind\":7}}"), std::string("\xff\xfe"),
        std::string("{\"parent\":{}"), deep}) {
    HookAnswer answer = service_.Sync(body);
    EXPECT_EQ(answer.status, 400) << body.substr(0, 40);
    Json refusal = MustParse(answer.body);
    ASSERT_FALSE(refusal["problems"].empty());
    for (const char* part : {"place", "found", "allowed", "next"})
      EXPECT_TRUE(refusal["problems"][0].contains(part)) << part;
  }
}

TEST_F(HookServer, WrongTypesAreNamedByPath) {
  HooksCluster cluster({{"model", {{"source", {{"builtin", "demo"}}}}},
                        {"replicas", "two"},
                        {"accelerator", {{"vendor", "nvida"}}},
                        {"pod", {{"env", 7}}}});
  HookAnswer answer = service_.Sync(cluster.Request().dump());
  EXPECT_EQ(answer.status, 400);
  std::string error = MustParse(answer.body)["error"];
  EXPECT_THAT(error, HasSubstr("parent.spec.replicas: a text: an integer; make it an integer"));
  EXPECT_THAT(error, HasSubstr("parent.spec.accelerator.vendor: \"nvida\": auto, nvidia, amd or "
                               "cpu; did you mean nvidia?"));
  EXPECT_THAT(error, HasSubstr("parent.spec.pod.env: a number: a list; make it a list"));
}

TEST_F(HookServer, AnObjectThatCannotBeReadCanStillBeDeleted) {
  HooksCluster cluster({{"model", 7}, {"replicas", "two"}});
  cluster.finalizing = true;
  HookAnswer answer = service_.Sync(cluster.Request().dump());
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(MustParse(answer.body)["finalized"], true);
}

TEST_F(HookServer, CustomizeAsksForTheNodesThatPodsMayRunOn) {
  HooksCluster cluster({{"model", Json::object()}, {"pod", {{"nodeSelector", {{"pool", "a"}}}}}});
  HookAnswer answer = service_.Customize(cluster.Request().dump());
  EXPECT_EQ(MustParse(answer.body)["relatedResources"][0]["labelSelector"]["matchLabels"]["pool"],
            "a");
}

}  // namespace
}  // namespace ashlar::hooks
