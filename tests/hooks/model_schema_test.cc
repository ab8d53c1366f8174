// manifests/crd.yaml, and what of it is generated.
#include "operator-hooks/model_schema.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>

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

// Of the definition that is installed: path -> schema, for each field of spec.model.
std::map<std::string, Json> InstalledFields() {
  std::map<std::string, Json> fields;
  std::function<void(const Json&, const std::string&)> walk = [&](const Json& schema,
                                                                  const std::string& path) {
    if (!path.empty()) fields[path] = schema;
    auto below = [&](const std::string& key, const Json& child) {
      walk(child, path.empty() ? key : path + "." + key);
    };
    if (schema.contains("properties")) {
      for (const auto& [key, child] : schema["properties"].items()) below(key, child);
    }
    if (schema.contains("additionalProperties")) below("*", schema["additionalProperties"]);
  };
  Json crd = ManifestToJson(Crd(), "crd.yaml").value();
  walk(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
          ["model"],
       "");
  return fields;
}

// Whether the runtime refuses `value` in a document, as docs/spec.md words it for this field.
bool Refuses(const SpecField& field, const Json& value) {
  Json document;
  Json* at = &document;
  std::istringstream path(field.path);
  for (std::string part; std::getline(path, part, '.');)
    at = &(*at)[part == "*" ? "default" : part];
  *at = value;
  Result<Spec> spec = LoadSpec(DumpJson(document), "model.yaml");
  if (spec) return false;
  return std::any_of(spec.problems().begin(), spec.problems().end(), [&](const Problem& problem) {
    return problem.place.ends_with(field.path == "backends.*.use" ? "backends.default.use"
                                                                  : field.path) &&
           (problem.allowed == field.allowed || field.path == "kind");
  });
}

TEST(Crd, HasNoModelFieldThatTheTableLacks) {
  std::map<std::string, Json> installed = InstalledFields();
  EXPECT_EQ(installed.size(), SpecFields().size());
  for (const SpecField& field : SpecFields()) EXPECT_TRUE(installed.contains(field.path));
}

TEST(Crd, BoundsAreThoseOfTheRuntimesMessages) {
  std::map<std::string, Json> installed = InstalledFields();
  int bounded = 0;
  for (const SpecField& field : SpecFields()) {
    const Json& schema = installed[field.path];
    if (!schema.contains("minimum")) {
      EXPECT_TRUE(field.type != "integer" && field.type != "intOrString") << field.path;
      continue;
    }
    ++bounded;
    const int64_t min = schema["minimum"], max = schema["maximum"];
    EXPECT_FALSE(Refuses(field, min)) << field.path;
    EXPECT_FALSE(Refuses(field, max)) << field.path;
    EXPECT_TRUE(Refuses(field, min - 1)) << field.path;
    EXPECT_TRUE(Refuses(field, max + 1)) << field.path;
    if (field.type == "integer" && max < 2147483647) {
      EXPECT_EQ(field.allowed, fmt::format("an integer from {} to {}", min, max)) << field.path;
    }
  }
  EXPECT_GE(bounded, 20);
}

TEST(Crd, WordsAndLengthsAreThoseOfTheRuntimesMessages) {
  std::map<std::string, Json> installed = InstalledFields();
  int words = 0, lengths = 0;
  for (const SpecField& field : SpecFields()) {
    const Json& schema = installed[field.path];
    for (const Json& word : schema.value("enum", Json::array())) {
      EXPECT_FALSE(Refuses(field, word)) << field.path << " " << word;
      EXPECT_TRUE(Refuses(field, word.get<std::string>() + "x")) << field.path;
      EXPECT_THAT(field.allowed, testing::HasSubstr(word.get<std::string>()));
      ++words;
    }
    if (!schema.contains("maxLength") || field.path == "kv.memory") continue;
    const char letter = field.path == "backends.*.use" ? 'A' : 'a';
    const size_t longest = schema["maxLength"];
    EXPECT_FALSE(Refuses(field, std::string(longest, letter))) << field.path;
    EXPECT_TRUE(Refuses(field, std::string(longest + 1, letter))) << field.path;
    ++lengths;
  }
  EXPECT_GE(words, 20);
  EXPECT_GE(lengths, 6);
}

TEST(Crd, ABlockSizeIsAutoOrANumber) {
  Json schema = InstalledFields()["kv.blockSize"];
  EXPECT_EQ(schema["pattern"], "^auto$");
  EXPECT_EQ(schema["minimum"], 1);
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
