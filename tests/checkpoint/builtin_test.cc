#include "checkpoint/builtin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/json.h"
#include "base/sha256.h"
#include "checkpoint/checkpoint.h"

namespace ashlar {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

TEST(BuiltinCheckpoint, RefusesAnUnknownNameWithTheKnownOnes) {
  Result<Checkpoint> opened = OpenBuiltinCheckpoint("dmeo");
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(Text(opened.problems()), HasSubstr("builtin:dmeo: is no model of this binary"));
  EXPECT_THAT(BuiltinCheckpointNames(), UnorderedElementsAre("demo", "demo-dense"));
  for (const std::string& name : BuiltinCheckpointNames())
    EXPECT_THAT(opened.problems()[0].allowed, HasSubstr(name));
}

TEST(BuiltinCheckpoint, EachModelOpensWithWeightsAndTokenizer) {
  if (BuiltinCheckpointNames().empty()) GTEST_SKIP() << "no model was linked into this build";
  for (const std::string& name : BuiltinCheckpointNames()) {
    Result<Checkpoint> opened = OpenBuiltinCheckpoint(name);
    ASSERT_TRUE(opened.ok()) << Text(opened.problems());
    EXPECT_EQ(opened->path, "builtin:" + name);
    EXPECT_EQ(opened->format, Checkpoint::Format::kSafetensors);
    EXPECT_TRUE(opened->config.contains("model_type"));
    EXPECT_GT(opened->total_bytes(), 0);
    EXPECT_FALSE(opened->tokenizer_json.empty());
    EXPECT_FALSE(opened->chat_template.empty());
    EXPECT_EQ(opened->Bytes(opened->tensors.front()).size(), opened->tensors.front().bytes);
  }
}

TEST(BuiltinCheckpoint, TheModelsTogetherStayWithinFourMegabytes) {
  int64_t bytes = 0;
  for (const BuiltinModel& model : BuiltinModels())
    for (const BuiltinFile& file : model.files) bytes += file.end - file.begin;
  EXPECT_LE(bytes, 4'000'000);
}

// The evaluation that the model card states is that of the weights that are linked.
TEST(BuiltinCheckpoint, TheEvaluationNamesTheWeights) {
  for (const BuiltinModel& model : BuiltinModels()) {
    std::ifstream file(std::string(ASHLAR_SOURCE_DIR "/runtime/checkpoint/builtin/") + model.name +
                       "/evaluation.json");
    const Json evaluation = Json::parse(file);
    for (const BuiltinFile& weights : model.files) {
      if (weights.name != std::string("model.safetensors")) continue;
      const std::string_view bytes(reinterpret_cast<const char*>(weights.begin),
                                   static_cast<size_t>(weights.end - weights.begin));
      EXPECT_EQ(evaluation["sha256"], Sha256Hex(bytes)) << model.name;
    }
  }
}

}  // namespace
}  // namespace ashlar
