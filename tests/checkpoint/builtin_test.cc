#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/checkpoint.h"

namespace ashlar {
namespace {

using testing::HasSubstr;

TEST(BuiltinCheckpoint, RefusesAnUnknownNameWithTheKnownOnes) {
  Result<Checkpoint> opened = OpenBuiltinCheckpoint("dmeo");
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(Text(opened.problems()), HasSubstr("builtin:dmeo: is no model of this binary"));
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

}  // namespace
}  // namespace ashlar
