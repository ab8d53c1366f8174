#include "operator-hooks/render.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "base/mapped_file.h"
#include "operator-hooks/manifest.h"
#include "plan/yaml.h"
#include "spec/spec.h"
#include "support/hooks_cluster.h"

namespace ashlar::hooks {
namespace {

using testing::HasSubstr;

const std::filesystem::path kSamples = std::string(ASHLAR_SOURCE_DIR) + "/manifests/samples";

std::vector<std::filesystem::path> InferenceModels() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(kSamples)) {
    Result<std::string> text = ReadTextFile(entry.path(), 1 << 20);
    if (text && text->find("kind: InferenceModel") != std::string::npos)
      files.push_back(entry.path());
  }
  return files;
}

Settings WithDownloader() {
  Settings settings;
  settings.download_image = "downloader:1";
  return settings;
}

TEST(Render, EverySampleGivesWhatTheOperatorWouldMake) {
  ASSERT_FALSE(InferenceModels().empty());
  for (const std::filesystem::path& file : InferenceModels()) {
    SCOPED_TRACE(file.string());
    std::string text = ReadTextFile(file, 1 << 20).value();
    Result<std::string> rendered = Render(text, file.filename(), "default", WithDownloader());
    ASSERT_TRUE(rendered) << Text(rendered.problems());
    HooksCluster cluster(Json::object());
    cluster.parent = ManifestToJson(text, "file").value();
    cluster.parent["metadata"]["namespace"] = "default";
    cluster.settings = WithDownloader();
    cluster.children.erase(std::string(kPodMonitors));
    std::string expected;
    for (const std::string& child : cluster.Sync().children)
      expected += "---\n" + YamlOf(MustParse(child));
    EXPECT_EQ(*rendered, expected);
  }
}

TEST(Render, DigestOfAManifestIsThatOfItsModelAlone) {
  for (const std::filesystem::path& file : InferenceModels()) {
    std::string text = ReadTextFile(file, 1 << 20).value();
    Json model = ManifestToJson(text, "file").value()["spec"]["model"];
    EXPECT_EQ(LoadSpec(text, "file").value().digest,
              LoadSpec(YamlOf(model), "model").value().digest)
        << file;
  }
}

TEST(Render, MistakesNameTheLine) {
  Result<std::string> rendered = Render(
      "apiVersion: ashlar.dev/v1alpha1\nkind: InferenceModel\nmetadata: {name: m}\nspec:\n"
      "  model:\n    source: {builtin: demo}\n    kv: {blockSize: 0}\n",
      "m.yaml", "default", {});
  ASSERT_FALSE(rendered);
  EXPECT_THAT(Text(rendered.problems()), HasSubstr("m.yaml:7:21"));
}

TEST(Manifest, ScalarsKeepTheirTypes) {
  Json json = ManifestToJson("{a: 1, b: \"1\", c: true, d: 1.5, e: text, f: null}", "m").value();
  EXPECT_EQ(json.dump(), R"({"a":1,"b":"1","c":true,"d":1.5,"e":"text","f":null})");
}

TEST(Manifest, RefusesWhatReadersReadDifferently) {
  for (const char* text : {"a: yes", "a: 0x10", "a: 012", "a: {b: 1, b: 2}", "a: *x"}) {
    Result<Json> json = ManifestToJson(text, "m");
    ASSERT_FALSE(json) << text;
    EXPECT_THAT(json.problems()[0].place, HasSubstr("m:1:"));
  }
}

}  // namespace
}  // namespace ashlar::hooks
