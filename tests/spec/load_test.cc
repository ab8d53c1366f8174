#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "base/sha256.h"
#include "spec/spec.h"
#include "support/spec_loading.h"

namespace ashlar {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view kWhole = R"(apiVersion: ashlar.dev/v1alpha1
kind: ModelSpec
name: org/smollm2
source:
  path: /models/smollm2.gguf
  config: {num_hidden_layers: 4, rope_theta: 10000.0, rope_scaling: null, tied: true}
platform: cpu
parallel: {tensor: 2, pipeline: 3}
cpu: {threads: 8}
contextLength: 8192
numerics: invariant
quantization: fp8
kv:
  blockSize: 32
  dtype: bfloat16
  layout: BLNHC
  memory: 12GiB
  prefixCache: false
backends:
  default: {prefer: [CPU_PAGED, REFERENCE], forbid: [OTHER]}
  sliding_window-2: {use: CPU_WINDOW}
limits: {sequences: 7, batchTokens: 100, queuedTokens: 5, queuedRequests: 6, queueSeconds: 8,
         messages: 9, prompts: 10, choices: 11}
server: {host: "::1", port: 9000, apiKeyFile: /etc/ashlar/keys, connections: 20, bodyBytes: 4096,
         headSeconds: 1, bodySeconds: 2, idleSeconds: 3, stuckReaderSeconds: 4, lameDuckSeconds: 0,
         drainSeconds: 6}
)";

TEST(LoadSpec, ReadsEveryField) {
  Result<Spec> loaded = LoadSpec(kWhole, "m.yaml");
  ASSERT_TRUE(loaded.ok()) << Text(loaded.problems());
  const Spec& spec = *loaded;
  EXPECT_EQ(spec.name, "org/smollm2");
  EXPECT_EQ(spec.source.path, "/models/smollm2.gguf");
  EXPECT_EQ(spec.source.builtin, "");
  EXPECT_EQ(DumpJson(*spec.source.config),
            R"({"num_hidden_layers":4,"rope_theta":10000.0,"rope_scaling":null,"tied":true})");
  EXPECT_EQ(spec.platform, "cpu");
  EXPECT_EQ(spec.parallel.tensor, 2);
  EXPECT_EQ(spec.parallel.pipeline, 3);
  EXPECT_EQ(spec.cpu.threads, 8);
  EXPECT_EQ(spec.context_length, 8192);
  EXPECT_TRUE(spec.invariant);
  EXPECT_EQ(spec.quantization, "fp8");
  EXPECT_EQ(spec.kv.block_size, 32);
  EXPECT_EQ(spec.kv.dtype, "bfloat16");
  EXPECT_EQ(spec.kv.layout, "BLNHC");
  EXPECT_EQ(spec.kv.memory.bytes, int64_t{12} << 30);
  EXPECT_FALSE(spec.kv.memory.percent.has_value());
  EXPECT_FALSE(spec.kv.prefix_cache);
  EXPECT_EQ(spec.backends.size(), 2u);
  EXPECT_THAT(spec.backends.at("default").prefer, ElementsAre("CPU_PAGED", "REFERENCE"));
  EXPECT_THAT(spec.backends.at("default").forbid, ElementsAre("OTHER"));
  EXPECT_EQ(spec.backends.at("sliding_window-2").use, "CPU_WINDOW");
  EXPECT_EQ(spec.limits.sequences, 7);
  EXPECT_EQ(spec.limits.batch_tokens, 100);
  EXPECT_EQ(spec.limits.queued_tokens, 5);
  EXPECT_EQ(spec.limits.queued_requests, 6);
  EXPECT_EQ(spec.limits.queue_seconds, 8);
  EXPECT_EQ(spec.limits.messages, 9);
  EXPECT_EQ(spec.limits.prompts, 10);
  EXPECT_EQ(spec.limits.choices, 11);
  EXPECT_EQ(spec.server.host, "::1");
  EXPECT_EQ(spec.server.port, 9000);
  EXPECT_EQ(spec.server.api_key_file, "/etc/ashlar/keys");
  EXPECT_EQ(spec.server.connections, 20);
  EXPECT_EQ(spec.server.body_bytes, 4096);
  EXPECT_EQ(spec.server.head_seconds, 1);
  EXPECT_EQ(spec.server.body_seconds, 2);
  EXPECT_EQ(spec.server.idle_seconds, 3);
  EXPECT_EQ(spec.server.stuck_reader_seconds, 4);
  EXPECT_EQ(spec.server.lame_duck_seconds, 0);
  EXPECT_EQ(spec.server.drain_seconds, 6);
}

TEST(LoadSpec, KeepsDefaultsOfWhatIsNotSaid) {
  Result<Spec> spec = LoadSpec("source: {builtin: demo}", "m.yaml");
  ASSERT_TRUE(spec.ok()) << Text(spec.problems());
  EXPECT_EQ(spec->kv.block_size, 0);
  EXPECT_EQ(spec->kv.memory.percent, 80);
  EXPECT_EQ(spec->server.port, 8000);
  EXPECT_FALSE(spec->context_length.has_value());
  EXPECT_FALSE(spec->source.config.has_value());
}

TEST(LoadSpec, PercentReplacesTheDefaultShare) {
  Result<Spec> spec = LoadSpec(WithDemo("kv: {memory: 100%}"), "m.yaml");
  ASSERT_TRUE(spec.ok()) << Text(spec.problems());
  EXPECT_EQ(spec->kv.memory.percent, 100);
}

TEST(LoadSpec, ServesUnderTheSourcesName) {
  const std::pair<const char*, const char*> cases[] = {
      {"path: /models/smollm2.gguf", "smollm2"},
      {"path: /models/Qwen3-0.6B/", "Qwen3-0.6B"},
      {"path: /models/llama/config.json", "llama"},
      {"path: config.json", "config"},
      {"path: \"/m/my model.gguf\"", "my-model"},
      {"path: /", "model"},
      {"path: /m/_.gguf", "model"},
      {"builtin: demo", "demo"},
  };
  for (const auto& [source, name] : cases) {
    Result<Spec> spec = LoadSpec(std::string("source: {") + source + "}", "m.yaml");
    ASSERT_TRUE(spec.ok()) << Text(spec.problems());
    EXPECT_EQ(spec->name, name) << source;
  }
}

TEST(LoadSpec, DocumentIsWhatWasSaidWithoutDefaults) {
  Result<Spec> spec = LoadSpec(
      "source:\n  path: /m\n  config: {b: 1.0, a: null, c: 1e-05}\nkv: {memory: 80%}\n", "m.yaml");
  ASSERT_TRUE(spec.ok()) << Text(spec.problems());
  EXPECT_EQ(spec->document,
            R"({"kv":{"memory":"80%"},"source":{"config":{"b":1,"c":1e-05},"path":"/m"}})");
  EXPECT_EQ(spec->digest, Sha256Hex(spec->document));
}

TEST(LoadSpec, DigestIgnoresSpellingAndOrder) {
  Result<Spec> block = LoadSpec("# a\nsource:\n  builtin: 'demo'\nkv:\n  blockSize: 16\n", "a");
  Result<Spec> flow = LoadSpec(R"({"kv":{"blockSize":16},"source":{"builtin":"demo"}})", "b");
  ASSERT_TRUE(block.ok()) << Text(block.problems());
  ASSERT_TRUE(flow.ok()) << Text(flow.problems());
  EXPECT_EQ(block->digest, flow->digest);
}

TEST(LoadSpec, ItsDocumentIsASpecOfTheSameDigest) {
  Result<Spec> spec = LoadSpec(kWhole, "m.yaml");
  ASSERT_TRUE(spec.ok()) << Text(spec.problems());
  Result<Spec> again = LoadSpec(spec->document, "document");
  ASSERT_TRUE(again.ok()) << Text(again.problems());
  EXPECT_EQ(again->digest, spec->digest);
}

std::string Indented(std::string_view text, const std::string& by) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\n', at);
    out += by + std::string(text.substr(at, end - at)) + "\n";
    at = end + 1;
  }
  return out;
}

std::string Manifest(std::string_view model) {
  return "apiVersion: ashlar.dev/v1alpha1\nkind: InferenceModel\n"
         "metadata: {name: x, annotations: null, labels: {a: yes}}\n"
         "spec:\n  replicas: 2\n  model:\n" +
         Indented(model, "    ") + "  future: {key: [1, 2]}\nstatus:\n";
}

TEST(LoadSpec, DigestOfAManifestIsThatOfItsModel) {
  Result<Spec> file = LoadSpec(kWhole, "m.yaml");
  Result<Spec> manifest = LoadSpec(Manifest(kWhole), "im.yaml");
  ASSERT_TRUE(file.ok()) << Text(file.problems());
  ASSERT_TRUE(manifest.ok()) << Text(manifest.problems());
  EXPECT_EQ(manifest->document, file->document);
  EXPECT_EQ(manifest->digest, file->digest);
}

TEST(LoadSpec, MessagesOfAManifestStartWithTheFieldPath) {
  EXPECT_THAT(SpecReport(Manifest("source: {builtin: demo}\nkv: {blockSize: 0}\n")),
              StartsWith("spec.model.kv.blockSize (m.yaml:8:21): 0 is too small"));
  EXPECT_THAT(SpecReport(Manifest("name: x\n")), StartsWith("spec.model.source (m.yaml:7:5): no"));
}

TEST(LoadSpec, ManifestIsCheckedForItsShapeEverywhere) {
  EXPECT_THAT(SpecReport(Manifest("source: {builtin: demo}\n") + "status: {}\n"),
              StartsWith("status (m.yaml:10:1): status stands twice"));
}

TEST(LoadSpec, ManifestOfAnotherVersionIsRefused) {
  EXPECT_THAT(SpecReport("apiVersion: ashlar.dev/v2\nkind: InferenceModel\n"
                         "spec: {model: {source: {builtin: demo}}}\n"),
              StartsWith("apiVersion (m.yaml:1:13): ashlar.dev/v2 is not known"));
}

TEST(LoadSpec, ReportsAllMistakesAtOnce) {
  Result<Spec> spec = LoadSpec(
      "nmae: x\nsource: {path: ''}\nkv: {blockSize: 0, dtype: fp99, dtype: auto}\n"
      "backends: {all: {use: A}}\nserver: {port: 0}\n",
      "m.yaml");
  ASSERT_FALSE(spec.ok());
  std::vector<std::string> places;
  for (const Problem& problem : spec.problems()) places.push_back(problem.place);
  EXPECT_THAT(places,
              ElementsAre("m.yaml:3:33 kv.dtype", "m.yaml:1:1 nmae", "m.yaml:2:16 source.path",
                          "m.yaml:3:17 kv.blockSize", "m.yaml:3:27 kv.dtype",
                          "m.yaml:4:12 backends.all", "m.yaml:5:16 server.port"));
}

TEST(LoadSpec, StopsCountingMistakesAtFifty) {
  std::string text = "source: {builtin: demo}\n";
  for (int i = 0; i < 500; ++i) text += "unknown_" + std::to_string(i) + ": 1\n";
  Result<Spec> spec = LoadSpec(text, "m.yaml");
  ASSERT_FALSE(spec.ok());
  EXPECT_EQ(spec.problems().size(), 51u);
  EXPECT_EQ(spec.problems().back().found, "more than 50 mistakes");
}

TEST(LoadSpec, RefusesAPlatformWordThatIsNotUtf8Safe) {
  EXPECT_THAT(SpecReport(WithDemo("platform: \"a\\nb\"")), HasSubstr(R"("a\x0ab" is not known)"));
}

TEST(Origins, PointAtFieldsOfTheDocument) {
  Result<Spec> spec = LoadSpec(WithDemo("kv:\n  blockSize: 24\n"), "m.yaml");
  ASSERT_TRUE(spec.ok()) << Text(spec.problems());
  EXPECT_EQ(spec->origins.Place("kv.blockSize"), "m.yaml:3:14 kv.blockSize");
  EXPECT_EQ(spec->origins.Place("kv.dtype"), "m.yaml kv.dtype");
  EXPECT_EQ(spec->origins.Place("kv"), "m.yaml:2:1 kv");
  EXPECT_TRUE(spec->origins.Has("source.builtin"));
  EXPECT_FALSE(spec->origins.Has("kv.dtype"));
}

TEST(Origins, FromAManifestStartWithTheFieldPath) {
  Result<Spec> spec = LoadSpec(Manifest(WithDemo("kv: {blockSize: 24}\n")), "im.yaml");
  ASSERT_TRUE(spec.ok()) << Text(spec.problems());
  EXPECT_EQ(spec->origins.Place("kv.blockSize"), "spec.model.kv.blockSize (im.yaml:8:21)");
  EXPECT_EQ(spec->origins.Place("kv.dtype"), "spec.model.kv.dtype (im.yaml)");
}

TEST(LoadSpecFile, ReadsTheSamples) {
  for (const char* name : {"demo.yaml", "demo-dense.yaml", "smollm2.yaml", "inferencemodel.yaml"}) {
    Result<Spec> spec = LoadSpecFile(std::string(ASHLAR_SOURCE_DIR "/manifests/samples/") + name);
    EXPECT_TRUE(spec.ok()) << Text(spec.problems());
  }
}

TEST(LoadSpecFile, RefusesAMissingFile) {
  Result<Spec> spec = LoadSpecFile("/nowhere/m.yaml");
  ASSERT_FALSE(spec.ok());
  EXPECT_THAT(Text(spec.problems()), HasSubstr("/nowhere/m.yaml"));
}

TEST(LoadSpecFile, RefusesMoreThan256KiBUnread) {
  std::string path = testing::TempDir() + "ashlar_spec_" + std::to_string(getpid());
  std::ofstream(path) << std::string(256 * 1024 + 1, '#');
  Result<Spec> spec = LoadSpecFile(path);
  std::remove(path.c_str());
  ASSERT_FALSE(spec.ok());
  EXPECT_THAT(Text(spec.problems()), HasSubstr("262145 bytes: at most 262144 bytes"));
}

}  // namespace
}  // namespace ashlar
