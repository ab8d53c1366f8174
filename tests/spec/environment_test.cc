#include "spec/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ashlar {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(Environment, SaysNothingOfStrangers) {
  EnvironmentReport report = CheckEnvironment({"PATH=/bin", "HOME=/root", "", "=", "ASHLA=1"});
  EXPECT_TRUE(report.problems.empty());
  EXPECT_TRUE(report.warnings.empty());
}

TEST(Environment, OwnVariablesNameTheirField) {
  const std::pair<const char*, const char*> cases[] = {
      {"ASHLAR_KV_BLOCK_SIZE=16", "kv.blockSize"}, {"ASHLAR_BLOCK_SIZE=16", "kv.blockSize"},
      {"ASHLAR_BLOCKSIZE=16", "kv.blockSize"},     {"ASHLAR_PLATFORM=cpu", "platform"},
      {"ASHLAR_KV_LAYUOT=x", "kv.layout"},         {"ASHLAR_CONTEXT_LENGTH=1", "contextLength"},
      {"ASHLAR_BACKENDS_USE=A", "backends.*.use"},
  };
  for (const auto& [entry, field] : cases) {
    EnvironmentReport report = CheckEnvironment({entry});
    ASSERT_EQ(report.problems.size(), 1u) << entry;
    EXPECT_EQ(report.problems[0].next, std::string("unset it and set ") + field + " in the spec");
  }
}

TEST(Environment, UnknownOwnVariablesAreRefusedToo) {
  EnvironmentReport report = CheckEnvironment({"ASHLAR_XYZZY=1"});
  ASSERT_EQ(report.problems.size(), 1u);
  EXPECT_EQ(report.problems[0].Text(),
            "ASHLAR_XYZZY: the environment variable is set: fields of the spec; no environment "
            "variable changes behaviour; unset it; docs/spec.md lists the fields");
}

TEST(Environment, ValuesAreNeverRepeated) {
  EnvironmentReport report = CheckEnvironment({"ASHLAR_API_KEY=s3cret", "VLLM_ROCM_X=s3cret"});
  EXPECT_THAT(Text(report.problems), Not(HasSubstr("s3cret")));
  EXPECT_THAT(report.warnings[0], Not(HasSubstr("s3cret")));
}

TEST(Environment, ServiceLinksOfKubernetesGiveOneWarning) {
  EnvironmentReport report = CheckEnvironment(
      {"ASHLAR_SERVICE_HOST=10.0.0.1", "ASHLAR_SERVICE_PORT=80", "ASHLAR_SERVICE_PORT_HTTP=80",
       "ASHLAR_PORT=tcp://10.0.0.1:80", "ASHLAR_PORT_80_TCP=tcp://10.0.0.1:80",
       "ASHLAR_HOOKS_PORT_80_TCP_ADDR=10.0.0.1"});
  EXPECT_TRUE(report.problems.empty()) << Text(report.problems);
  EXPECT_THAT(
      report.warnings,
      ElementsAre("ASHLAR_HOOKS_PORT_80_TCP_ADDR is ignored with 5 like it: Kubernetes sets "
                  "it for a Service named ashlar*"));
}

TEST(Environment, PeersVariablesNameOurField) {
  EnvironmentReport report =
      CheckEnvironment({"VLLM_ATTENTION_BACKEND=FLASH_ATTN", "VLLM_KV_CACHE_LAYOUT=HND",
                        "VLLM_ROCM_USE_AITER=1", "VLLM_BATCH_INVARIANT=1", "VLLM_LOGGING=1"});
  EXPECT_TRUE(report.problems.empty());
  EXPECT_THAT(
      report.warnings,
      ElementsAre("VLLM_ATTENTION_BACKEND is set and changes nothing here; the spec's field "
                  "is backends.default.use",
                  "VLLM_KV_CACHE_LAYOUT is set and changes nothing here; the spec's field "
                  "is kv.layout",
                  "VLLM_ROCM_USE_AITER is set and changes nothing here; the spec's field is "
                  "backends.default.prefer",
                  "VLLM_BATCH_INVARIANT is set and changes nothing here; the spec's field "
                  "is numerics: invariant"));
}

}  // namespace
}  // namespace ashlar
