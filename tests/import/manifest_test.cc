#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "import/import.h"

namespace ashlar {
namespace {

using testing::HasSubstr;

std::string Document(const char* yaml, const std::string& container = "") {
  Result<Imported> imported = ImportManifest(yaml, "pod.yaml", container);
  if (!imported.ok()) return Text(imported.problems());
  Json document = imported->document;
  document.erase("apiVersion");
  document.erase("kind");
  return document.dump();
}

constexpr char kPod[] = R"(apiVersion: v1
kind: Pod
metadata: {name: llm}
spec:
  containers:
  - name: proxy
    image: envoy
  - name: server
    image: vllm/vllm-openai:v0.33.0
    args: [--model, $(MODEL), --max-model-len, "8192"]
    env:
    - {name: MODEL, value: Qwen/Qwen3-8B}
    - {name: VLLM_BATCH_INVARIANT, value: "1"}
    - name: HF_TOKEN
      valueFrom: {secretKeyRef: {name: hf, key: token}}
    resources: {limits: {nvidia.com/gpu: 1}}
)";

TEST(ImportManifest, ReadsAPod) {
  EXPECT_EQ(Document(kPod),
            R"({"name":"Qwen/Qwen3-8B","source":{"path":"/models/Qwen3-8B"},"platform":"cuda",)"
            R"("contextLength":8192,"numerics":"invariant"})");
}

TEST(ImportManifest, ReadsAScriptInADeployment) {
  EXPECT_EQ(Document(R"(kind: Deployment
spec:
  template:
    spec:
      containers:
      - name: main
        command: [/bin/bash, -c]
        args:
        - |
          pip install extra
          exec vllm serve "$MODEL" \
            --port ${PORT}
        env:
        - {name: MODEL, value: /data/m}
        - {name: PORT, value: "8001"}
        resources: {limits: {amd.com/gpu: 8}}
)"),
            R"({"source":{"path":"/data/m"},"platform":"hip","server":{"port":8001}})");
}

TEST(ImportManifest, ReadsAnInferenceService) {
  constexpr char kService[] = R"(apiVersion: serving.kserve.io/v1alpha2
kind: LLMInferenceService
metadata: {name: llama}
spec:
  model: {uri: hf://meta-llama/Llama-3.1-8B, name: llama}
  replicas: 3
  parallelism: {tensor: 2}
  template:
    containers:
    - name: main
      command: [vllm, serve, /mnt/models]
      args: [--block-size, "64"]
)";
  EXPECT_EQ(Document(kService),
            R"({"name":"llama","source":{"path":"/models/Llama-3.1-8B"},"parallel":{"tensor":2},)"
            R"("kv":{"blockSize":64}})");
}

TEST(ImportManifest, KeepsWhatChangesVllmsChoice) {
  Result<Imported> imported = ImportManifest(R"(kind: Pod
spec:
  containers:
  - name: main
    args: [vllm, serve, /m]
    env:
    - {name: VLLM_ROCM_USE_AITER, value: "1"}
    - {name: VLLM_ROCM_USE_AITER_MHA, value: "False"}
)",
                                             "pod.yaml", "");
  ASSERT_TRUE(imported.ok()) << Text(imported.problems());
  EXPECT_EQ(imported->assume, "aiter=on,aiterMha=off");
}

TEST(ImportManifest, AnInferenceServiceNeedsNoContainer) {
  EXPECT_EQ(Document("kind: LLMInferenceService\nspec: {model: {uri: 's3://bucket/dir/m'}}\n"),
            R"({"source":{"path":"/models/m"}})");
}

TEST(ImportManifest, MistakesNameTheirPlace) {
  EXPECT_THAT(Document("kind: Service\n"),
              HasSubstr("pod.yaml:1:1: kind Service: Pod, Deployment"));
  EXPECT_THAT(Document("a: 1\n"), HasSubstr("no kind"));
  EXPECT_THAT(Document("kind: Pod\n"), HasSubstr("no container"));
  EXPECT_THAT(Document("kind: Pod\nspec: {containers: [{name: a}, {name: b}]}\n"),
              HasSubstr("0 of the containers a, b run vLLM"));
  EXPECT_THAT(Document(kPod, "proxi"),
              HasSubstr("0 of the containers proxy, server are named proxi"));
  EXPECT_THAT(Document(kPod, "proxy"), HasSubstr("container proxy: no model"));
  EXPECT_THAT(
      Document("kind: Pod\nspec: {containers: [{name: a, command: [sh, -c, 'sleep 1']}]}\n"),
      HasSubstr("a script that never runs vllm serve"));
  EXPECT_THAT(Document("{"), HasSubstr("pod.yaml"));
}

TEST(ImportManifest, HostileDocumentsAreRefusedOrRead) {
  for (const char* yaml :
       {"", "[]", "kind: {a: b}", "kind: Pod\nspec: []", "kind: Pod\nspec: {containers: {a: b}}",
        "kind: Pod\nspec: {containers: [1, [2]]}",
        "kind: Pod\nspec: {containers: [{args: {a: 1}}]}",
        "kind: Pod\nspec: {containers: [{name: [x], args: [[a]], env: 7}]}"}) {
    EXPECT_NE(Document(yaml), "") << yaml;
  }
}

}  // namespace
}  // namespace ashlar
