// manifests/crd.yaml, and what of it is generated.
#include "operator-hooks/model_schema.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "base/mapped_file.h"
#include "operator-hooks/manifest.h"
#include "spec/fields.h"

namespace ashlar::hooks {
namespace {

const std::string kCrd = std::string(ASHLAR_SOURCE_DIR) + "/manifests/crd.yaml";
constexpr std::string_view kBegin = "              # model: generated, ashlar-hooks schema\n";
constexpr std::string_view kEnd = "              # model: end\n";

std::string Crd() { return ReadTextFile(kCrd, 1 << 20).value(); }

TEST(ModelSchema, IsWhatTheCrdHolds) {
  std::string crd = Crd();
  size_t begin = crd.find(kBegin), end = crd.find(kEnd);
  ASSERT_NE(begin, crd.npos);
  ASSERT_NE(end, crd.npos);
  begin += kBegin.size();
  std::string expected = "              model:\n" + ModelSchemaYaml(16);
  if (crd.substr(begin, end - begin) == expected) return;
  std::string mended = std::string(ASHLAR_BUILD_DIR) + "/crd.yaml";
  std::ofstream(mended) << crd.substr(0, begin) << expected << crd.substr(end);
  FAIL() << "the field table has changed: cp " << mended << " " << kCrd;
}

TEST(ModelSchema, HasEachFieldAndNoDefault) {
  Json schema = ModelSchema();
  for (const SpecField& field : SpecFields()) {
    const Json* at = &schema;
    std::istringstream path(field.path);
    for (std::string part; std::getline(path, part, '.');)
      at = part == "*" ? &(*at)["additionalProperties"] : &(*at)["properties"][part];
    EXPECT_TRUE(at->contains("type") || at->contains("x-kubernetes-int-or-string")) << field.path;
  }
  EXPECT_EQ(schema.dump().find("\"default\":"), std::string::npos);
}

TEST(ModelSchema, BoundsAreTheReaders) {
  Json port = ModelSchema()["properties"]["server"]["properties"]["port"];
  EXPECT_EQ(port["minimum"], 1);
  EXPECT_EQ(port["maximum"], 65'535);
  Json lame_duck = ModelSchema()["properties"]["server"]["properties"]["lameDuckSeconds"];
  EXPECT_EQ(lame_duck["minimum"], 0);
  EXPECT_EQ(lame_duck["maximum"], 3600);
}

TEST(ModelSchema, WordsAreTheReaders) {
  Json properties = ModelSchema()["properties"];
  EXPECT_EQ(properties["platform"]["enum"], Json({"auto", "cuda", "hip", "cpu", "reference"}));
  EXPECT_EQ(properties["kind"]["enum"], Json({"ModelSpec"}));
  EXPECT_FALSE(properties["name"].contains("enum"));
}

TEST(Crd, IsYamlThatEveryReaderReadsAlike) {
  Result<Json> crd = ManifestToJson(Crd(), "crd.yaml");
  ASSERT_TRUE(crd) << Text(crd.problems());
  EXPECT_EQ((*crd)["spec"]["names"]["shortNames"], Json({"im"}));
}

// The structural rules that the API server would refuse the whole definition for.
void CheckStructural(const Json& schema, const std::string& path) {
  bool any = schema.contains("x-kubernetes-int-or-string");
  EXPECT_TRUE(any || schema.contains("type")) << path;
  EXPECT_FALSE(schema.contains("properties") && schema.contains("additionalProperties")) << path;
  if (schema.contains("properties")) {
    for (const auto& [key, child] : schema["properties"].items())
      CheckStructural(child, path + "." + key);
  }
  if (schema.contains("items")) CheckStructural(schema["items"], path + "[]");
  if (schema.contains("additionalProperties"))
    CheckStructural(schema["additionalProperties"], path + ".*");
  for (const Json& name : schema.value("required", Json::array()))
    EXPECT_TRUE(schema["properties"].contains(name.get<std::string>())) << path << " " << name;
}

TEST(Crd, IsStructural) {
  Json crd = ManifestToJson(Crd(), "crd.yaml").value();
  CheckStructural(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"], "");
}

}  // namespace
}  // namespace ashlar::hooks
