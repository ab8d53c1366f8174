#include "checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/checkpoint_files.h"
#include "support/gguf_writer.h"

namespace ashlar {
namespace {

using testing::HasSubstr;
using testing_support::GgufWriter;
using testing_support::TempFolder;

TEST(OpenCheckpoint, SaysThatTheFileIsMissing) {
  Result<Checkpoint> opened = OpenCheckpoint("/nonexistent/model.gguf");
  EXPECT_EQ(Text(opened.problems()),
            "/nonexistent/model.gguf: cannot be read: No such file or directory: a readable file; "
            "check the path and the mount");
}

TEST(OpenCheckpoint, KnowsGgufByItsContentToo) {
  TempFolder folder;
  std::string path =
      folder.Write("blob", GgufWriter().String("general.architecture", "llama").Bytes());
  Result<Checkpoint> opened = OpenCheckpoint(path);
  ASSERT_TRUE(opened.ok()) << Text(opened.problems());
  EXPECT_EQ(opened->format, Checkpoint::Format::kGguf);
  EXPECT_EQ(opened->path, path);
}

TEST(OpenCheckpoint, PointsFromASafetensorsFileToItsFolder) {
  TempFolder folder;
  Result<Checkpoint> opened = OpenCheckpoint(folder.Write("model.safetensors", "x"));
  EXPECT_THAT(Text(opened.problems()), HasSubstr("name the folder that holds it"));
}

TEST(OpenCheckpoint, ReadsAConfigAlone) {
  TempFolder folder;
  folder.Write("model.safetensors", "not even looked at");
  Result<Checkpoint> opened =
      OpenCheckpoint(folder.Write("config.json", R"({"model_type": "llama"})"));
  ASSERT_TRUE(opened.ok()) << Text(opened.problems());
  EXPECT_EQ(opened->format, Checkpoint::Format::kConfigOnly);
  EXPECT_EQ(opened->config["model_type"], "llama");
  EXPECT_TRUE(opened->tensors.empty());
}

}  // namespace
}  // namespace ashlar
