#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/checkpoint.h"
#include "support/checkpoint_files.h"
#include "support/safetensors_writer.h"

namespace ashlar {
namespace {

using testing::HasSubstr;
using testing::SizeIs;
using testing_support::SafetensorsWriter;
using testing_support::TempFolder;

std::string OneTensor(std::string_view name) {
  return SafetensorsWriter().Tensor(name, "F16", {2}, "abcd").Bytes();
}

TEST(ModelFolder, ReadsEachFileOfAHuggingFaceModel) {
  TempFolder folder;
  folder.Write("config.json", R"({"model_type":"llama"})");
  folder.Write("generation_config.json", R"({"temperature":0.6})");
  folder.Write("model.safetensors", OneTensor("w"));
  folder.Write("tokenizer.json", "{\"version\":\"1.0\"}");
  folder.Write("tokenizer_config.json", R"({"chat_template":"from config","bos_token":"<s>"})");
  Result<Checkpoint> opened = OpenCheckpoint(folder.path());
  ASSERT_TRUE(opened.ok()) << Text(opened.problems());
  EXPECT_EQ(opened->format, Checkpoint::Format::kSafetensors);
  EXPECT_EQ((*opened->generation_config)["temperature"], 0.6);
  EXPECT_EQ(opened->tokenizer_json, "{\"version\":\"1.0\"}");
  EXPECT_EQ((*opened->tokenizer_config)["bos_token"], "<s>");
  EXPECT_EQ(opened->chat_template, "from config");
  EXPECT_NE(opened->Find("w"), nullptr);
  folder.Write("chat_template.jinja", "from its own file");
  EXPECT_EQ(OpenCheckpoint(folder.path())->chat_template, "from its own file");
}

TEST(ModelFolder, TakesTheDefaultOfNamedTemplates) {
  TempFolder folder;
  folder.Write("config.json", "{}");
  folder.Write("tokenizer_config.json", R"({"chat_template":[{"name":"tool_use","template":"t"},
                                            {"name":"default","template":"d"}]})");
  EXPECT_EQ(OpenCheckpoint(folder.path())->chat_template, "d");
}

TEST(ModelFolder, WithoutWeightsIsAPlanOnlyModel) {
  TempFolder folder;
  folder.Write("config.json", "{}");
  EXPECT_EQ(OpenCheckpoint(folder.path())->format, Checkpoint::Format::kConfigOnly);
}

TEST(ModelFolder, FollowsTheIndexAndIgnoresOtherShards) {
  TempFolder folder;
  folder.Write("config.json", "{}");
  folder.Write("model-1.safetensors", OneTensor("b"));
  folder.Write("model-2.safetensors", OneTensor("a"));
  folder.Write("consolidated.safetensors", "ignored");
  folder.Write("model.safetensors.index.json",
               R"({"weight_map":{"a":"model-2.safetensors","b":"model-1.safetensors"}})");
  Result<Checkpoint> opened = OpenCheckpoint(folder.path());
  ASSERT_TRUE(opened.ok()) << Text(opened.problems());
  ASSERT_THAT(opened->tensors, SizeIs(2));
  EXPECT_EQ(opened->files[opened->Find("a")->file].path(), folder.path() + "/model-2.safetensors");
  EXPECT_EQ(opened->Bytes(*opened->Find("b")).size(), 4u);
}

TEST(ModelFolder, ReportsEveryMistakeAtOnce) {
  TempFolder folder;
  folder.Write("config.json", "[1]");
  folder.Write("model.safetensors", "short");
  folder.Write("tokenizer_config.json", "{");
  Result<Checkpoint> opened = OpenCheckpoint(folder.path());
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.problems(), SizeIs(3));
  EXPECT_THAT(Text(opened.problems()), HasSubstr("config.json: holds a JSON array: a JSON object"));
}

TEST(ModelFolder, NamesTheGgufInside) {
  TempFolder folder;
  folder.Write("tiny.gguf", "");
  EXPECT_THAT(Text(OpenCheckpoint(folder.path()).problems()),
              HasSubstr("name the file itself: " + folder.path() + "/tiny.gguf"));
}

TEST(ModelFolder, FollowsLinksInsideItselfAndToTheBlobsOfACache) {
  namespace fs = std::filesystem;
  TempFolder cache;
  fs::create_directories(cache.path() + "/snapshots/abc");
  fs::create_directories(cache.path() + "/blobs");
  cache.Write("blobs/1", "{}");
  cache.Write("secret", "{}");
  std::string folder = cache.path() + "/snapshots/abc";
  fs::create_symlink("../../blobs/1", folder + "/config.json");
  fs::create_symlink("config.json", folder + "/generation_config.json");
  Result<Checkpoint> opened = OpenCheckpoint(folder);
  ASSERT_TRUE(opened.ok()) << Text(opened.problems());
  fs::create_symlink("../../secret", folder + "/tokenizer.json");
  EXPECT_THAT(Text(OpenCheckpoint(folder).problems()), HasSubstr("/secret: a file inside"));
}

}  // namespace
}  // namespace ashlar
