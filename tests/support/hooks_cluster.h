// A cluster of one InferenceModel for tests of the hooks: what Metacontroller would send and what
// it would do with the answer, without clock or network.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "operator-hooks/names.h"
#include "operator-hooks/sync.h"
#include "serve/checks.h"

namespace ashlar::hooks {

inline Json MustParse(std::string_view text) {
  Result<Json> json = ParseJson(text, "test");
  if (!json) ADD_FAILURE() << Text(json.problems()) << "\n" << text;
  return json ? *std::move(json) : Json();
}

// The plan part of a pod's /status.
inline Json PodPlan(const std::string& hostname, int block_tokens) {
  Json candidates = {{{"backend", "CPU_PAGED"}, {"platform", "cpu"}, {"valid", true}},
                     {{"backend", "CPU_WINDOW"},
                      {"platform", "cpu"},
                      {"valid", false},
                      {"refusals", {{{"text", "attention type not supported"}}}}},
                     {{"backend", "CUDA_PAGED"},
                      {"platform", "cuda"},
                      {"valid", false},
                      {"refusals", {{{"text", "other device"}}}}}};
  Json attention = {{"requestedBackend", "auto"},
                    {"backend", "CPU_PAGED"},
                    {"reason", "rank 0 of 2 valid"},
                    {"candidates", candidates}};
  Json group = {{"index", 0},
                {"name", "full_attention"},
                {"kind", "full_attention"},
                {"layers", Json::array({0, 1, 2, 3})},
                {"dtype", "bfloat16"},
                {"blockSize", block_tokens},
                {"kernelBlockSize", 16},
                {"blocks", 1000},
                {"bytes", 1 << 20},
                {"attention", Json::array({attention})}};
  return {{"platform", "cpu"},
          {"platformName", hostname},
          {"product", "AMD EPYC 7763"},
          {"layout", "LBHNC"},
          {"kvGroups", Json::array({group})}};
}

inline PodStatus ReadPod(const std::string& address, const Json& document) {
  JsonParser parser;
  Problems problems;
  std::string text = document.dump();
  PodStatus pod = ReadPodStatus(parser.Parse(text, address).value(), address, problems);
  EXPECT_TRUE(problems.empty()) << Text(problems);
  return pod;
}

// A pod's /status: every check before `failed` has passed, those after it are pending. "" is a pod
// that serves.
inline PodStatus Pod(const std::string& address, const std::string& hostname,
                     const std::string& digest, const std::string& failed = "",
                     int block_tokens = 16) {
  Json checks = Json::array();
  std::string state = "passed";
  for (const CheckInfo& info : kChecks) {
    Json check = {{"name", info.name}, {"problems", Json::array()}};
    if (info.name == failed) {
      check["state"] = "failed";
      check["condition"] = info.condition;
      check["reason"] = info.reason;
      check["problems"].push_back({{"message", "what went wrong"}});
      state = "pending";
    } else {
      check["state"] = state;
    }
    checks.push_back(check);
  }
  return ReadPod(address, {{"digest", digest},
                           {"phase", failed.empty() ? "ready" : "rejected"},
                           {"ready", failed.empty()},
                           {"checks", checks},
                           {"plan", PodPlan(hostname, block_tokens)}});
}

class HooksCluster {
 public:
  explicit HooksCluster(const Json& spec) {
    parent = {{"apiVersion", "ashlar.dev/v1alpha1"},
              {"kind", "InferenceModel"},
              {"metadata",
               {{"name", "demo"}, {"namespace", "default"}, {"uid", "u-1"}, {"generation", 1}}},
              {"spec", spec}};
    for (std::string_view kind : NoChildren().kinds) children[std::string(kind)] = Json::object();
  }

  // A spec with one member of it changed.
  void Change(const std::string& member, const Json& value) {
    parent["spec"][member] = value;
    parent["metadata"]["generation"] = parent["metadata"]["generation"].get<int>() + 1;
  }

  Json Request() const {
    return {{"controller", Json::object()},
            {"parent", parent},
            {"children", children},
            {"related", {{"Node.v1", nodes}}},
            {"finalizing", finalizing}};
  }

  Observed Observe() const { return Observe(Request().dump()); }
  static Observed Observe(const std::string& body) {
    JsonParser parser;
    Problems problems;
    Observed observed = ReadObserved(parser.Parse(body, "body").value(), problems);
    EXPECT_TRUE(problems.empty()) << Text(problems);
    return observed;
  }

  // One sync, carried out.
  Reconciled Sync() {
    Reconciled result = Reconcile(Observe(), snapshot, now, settings, nullptr);
    parent["status"] = MustParse(result.status);
    Json before = children;
    for (auto& [kind, objects] : children.items()) objects = Json::object();
    for (const std::string& text : result.children) Apply(MustParse(text), before);
    return result;
  }

  // The Deployment's controller has brought `ready` of the wanted pods to serve.
  void SetReady(int64_t ready) {
    Json& deployment = Deployment();
    int64_t wanted = deployment["spec"]["replicas"];
    deployment["status"] = {{"observedGeneration", deployment["metadata"]["generation"]},
                            {"replicas", wanted},
                            {"updatedReplicas", wanted},
                            {"readyReplicas", ready}};
  }
  // As many pods as wanted, all of the present template.
  void SetPods(const std::string& failed = "") {
    snapshot.polled = true;
    snapshot.pods.clear();
    for (int64_t i = 0; i < Deployment()["spec"]["replicas"].get<int64_t>(); ++i)
      snapshot.pods.push_back(Pod("10.0.0." + std::to_string(i + 1), Hostname(), Digest(), failed));
  }
  // The usual way to Ready.
  void Settle() {
    Sync();
    SetReady(Deployment()["spec"]["replicas"]);
    SetPods();
    Sync();
  }

  Json& Deployment() { return children["Deployment.apps/v1"]["default/demo"]; }
  bool HasDeployment() const { return children["Deployment.apps/v1"].contains("default/demo"); }
  std::string Hostname() { return Deployment()["spec"]["template"]["spec"]["hostname"]; }
  std::string Digest() { return Deployment()["metadata"]["annotations"][std::string(kDigestKey)]; }
  Json Condition(const std::string& type) const {
    for (const Json& condition : parent["status"]["conditions"]) {
      if (condition["type"] == type) return condition;
    }
    ADD_FAILURE() << "no condition " << type;
    return Json();
  }
  std::string Reason(const std::string& type) const { return Condition(type)["reason"]; }
  std::string Truth(const std::string& type) const { return Condition(type)["status"]; }
  std::string Message(const std::string& type) const { return Condition(type)["message"]; }
  // "ConfigMap/demo-0123456789", in the order of the answer.
  static std::vector<std::string> Names(const Reconciled& result) {
    std::vector<std::string> names;
    for (const std::string& text : result.children) {
      Json child = MustParse(text);
      names.push_back(child["kind"].get<std::string>() + "/" +
                      child["metadata"]["name"].get<std::string>());
    }
    return names;
  }

  Json parent, children = Json::object(), nodes = Json::object();
  bool finalizing = false;
  Snapshot snapshot;
  int64_t now = 1'800'000'000;
  Settings settings;

 private:
  void Apply(Json child, const Json& before) {
    std::string version = child["apiVersion"], kind = child["kind"];
    std::string group = kind + "." + version;
    std::string key = "default/" + child["metadata"]["name"].get<std::string>();
    int64_t generation = 1;
    Json objects = before.value(group, Json::object());
    if (objects.contains(key)) {
      const Json& old = objects[key];
      bool same = old.value("spec", Json()) == child.value("spec", Json());
      generation = old["metadata"]["generation"].get<int64_t>() + (same ? 0 : 1);
      if (old.contains("status")) child["status"] = old["status"];
    }
    child["metadata"]["generation"] = generation;
    children[group][key] = std::move(child);
  }
};

// Members of every object in another order.
inline Json Shuffled(const Json& value, std::mt19937& random) {
  if (value.is_array()) {
    Json list = Json::array();
    for (const Json& item : value) list.push_back(Shuffled(item, random));
    return list;
  }
  if (!value.is_object()) return value;
  std::vector<std::pair<std::string, Json>> members;
  for (const auto& [key, member] : value.items())
    members.emplace_back(key, Shuffled(member, random));
  std::shuffle(members.begin(), members.end(), random);
  Json object = Json::object();
  for (auto& [key, member] : members) object[key] = std::move(member);
  return object;
}

// Compares with tests/hooks/golden/<name>; what would be right is written beside the build.
void ExpectGolden(const std::string& name, const std::string& text);

}  // namespace ashlar::hooks
