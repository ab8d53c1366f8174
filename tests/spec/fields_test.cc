#include "spec/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "device/row.h"
#include "spec/spec.h"
#include "support/spec_loading.h"

namespace ashlar {
namespace {

// The rows of the table in docs/spec.md whose first cell is a field in backquotes.
std::vector<SpecField> DocumentedFields() {
  std::ifstream file(ASHLAR_SOURCE_DIR "/docs/spec.md");
  std::vector<SpecField> rows;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| `")) continue;
    std::vector<std::string> cells;
    std::istringstream in(line.substr(2));
    for (std::string cell; std::getline(in, cell, '|');) {
      while (cell.starts_with(' ')) cell.erase(0, 1);
      while (cell.ends_with(' ')) cell.pop_back();
      cells.push_back(cell);
    }
    if (cells.size() < 4) continue;
    rows.push_back({cells[0].substr(1, cells[0].size() - 2), cells[1], cells[2], cells[3]});
  }
  return rows;
}

TEST(SpecFields, AreTheTableOfTheDocs) {
  std::vector<SpecField> documented = DocumentedFields();
  ASSERT_EQ(documented.size(), SpecFields().size());
  for (size_t i = 0; i < documented.size(); ++i) {
    const SpecField& field = SpecFields()[i];
    EXPECT_EQ(documented[i].path, field.path);
    EXPECT_EQ(documented[i].type, field.type) << field.path;
    EXPECT_EQ(documented[i].allowed, field.allowed) << field.path;
    EXPECT_EQ(documented[i].fallback, field.fallback) << field.path;
  }
}

TEST(SpecFields, HaveATypeOfTheSchema) {
  const std::set<std::string> types = {"string", "integer",    "boolean",    "object",
                                       "map",    "stringList", "intOrString"};
  std::set<std::string> paths;
  for (const SpecField& field : SpecFields()) {
    EXPECT_TRUE(types.contains(field.type)) << field.path;
    EXPECT_NE(field.allowed, "") << field.path;
    EXPECT_TRUE(paths.insert(field.path).second) << field.path;
  }
}

TEST(SpecFields, EveryLeafHasAReaderAndEveryParentARow) {
  for (const Field& field : Fields()) {
    bool inner = !FieldKeys(field.doc.path).empty();
    EXPECT_EQ(field.read == nullptr, inner) << field.doc.path;
    size_t dot = field.doc.path.rfind('.');
    if (dot == std::string::npos) continue;
    EXPECT_NE(FindField(field.doc.path.substr(0, dot)), nullptr) << field.doc.path;
  }
}

TEST(SpecFields, DefaultsCanBeWrittenDown) {
  for (const SpecField& field : SpecFields()) {
    if (field.type != "integer" && field.type != "boolean" && field.path != "kv.memory") continue;
    if (field.fallback.find(' ') != std::string::npos) continue;  // a rule, not a value
    size_t dot = field.path.find('.');
    std::string text = dot == std::string::npos
                           ? field.path + ": " + field.fallback
                           : field.path.substr(0, dot) + ": {" + field.path.substr(dot + 1) + ": " +
                                 field.fallback + "}";
    EXPECT_EQ(SpecReport(WithDemo(text)), "accepted") << field.path;
  }
}

TEST(SpecFields, BackendsTakeEveryKindOfTheDeviceTable) {
  for (int32_t kind = 0; kind <= static_cast<int32_t>(KvKind::kMamba); ++kind) {
    std::string name(Name(static_cast<KvKind>(kind)));
    for (const std::string& key : {name, name + "-2", name + "-17"}) {
      EXPECT_EQ(SpecReport(WithDemo("backends: {" + key + ": {use: A}}")), "accepted") << key;
    }
    for (const std::string& key : {name + "-1", name + "-02", name + "-", name + "2"}) {
      EXPECT_NE(SpecReport(WithDemo("backends: {" + key + ": {use: A}}")), "accepted") << key;
    }
  }
}

TEST(SpecFields, LayoutsAreThoseOfTheDeviceTable) {
  for (int32_t layout = 1; layout <= 6; ++layout) {
    std::string name(Name(static_cast<KvLayout>(layout)));
    EXPECT_EQ(SpecReport(WithDemo("kv: {layout: " + name + "}")), "accepted") << name;
  }
}

TEST(SpecFields, CacheTypesAreNamesOfDTypes) {
  for (const char* name : {"float32", "float16", "bfloat16"}) {
    EXPECT_TRUE(ParseDType(name).has_value());
    EXPECT_EQ(SpecReport(WithDemo(std::string("kv: {dtype: ") + name + "}")), "accepted");
  }
}

}  // namespace
}  // namespace ashlar
