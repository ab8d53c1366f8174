#include "operator-hooks/model_schema.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <vector>

#include "base/check.h"
#include "plan/yaml.h"
#include "spec/fields.h"

namespace ashlar::hooks {
namespace {

// Longest text of any field: a path.
constexpr int kTextBytes = 4096;
constexpr int kListItems = 64;
constexpr int64_t kLargest = int64_t{1} << 40;

bool Accepts(const Field& field, const std::string& text) {
  YamlNode node;
  node.kind = YamlNode::Kind::kScalar;
  node.text = text;
  Spec scratch;
  return field.read(node, "default", scratch).mistakes.empty();
}

bool Accepts(const Field& field, int64_t value) { return Accepts(field, std::to_string(value)); }

// The last value that is accepted on the way from an accepted one to a refused one.
int64_t Boundary(const Field& field, int64_t accepted, int64_t refused) {
  while (std::abs(refused - accepted) > 1) {
    int64_t middle = accepted + (refused - accepted) / 2;
    (Accepts(field, middle) ? accepted : refused) = middle;
  }
  return accepted;
}

Json IntegerSchema(const Field& field) {
  int64_t inside = 1;
  while (!Accepts(field, inside)) {
    inside *= 2;
    Check(inside < kLargest, "every integer field accepts a power of two");
  }
  return {{"type", "integer"},
          {"minimum", Boundary(field, inside, -1)},
          {"maximum", Boundary(field, inside, kLargest)}};
}

// The parts of "a, b or c".
std::vector<std::string> Parts(std::string text) {
  if (size_t last = text.rfind(" or "); last != text.npos) text.replace(last, 4, ", ");
  std::vector<std::string> parts;
  for (size_t start = 0; start <= text.size();) {
    size_t comma = std::min(text.find(", ", start), text.size());
    parts.push_back(text.substr(start, comma - start));
    start = comma + 2;
  }
  return parts;
}

// The words of a field that takes nothing else.
std::optional<std::vector<std::string>> Words(const Field& field) {
  std::vector<std::string> words = Parts(field.doc.allowed);
  bool all = std::all_of(words.begin(), words.end(),
                         [&](const std::string& word) { return Accepts(field, word); });
  if (!all || Accepts(field, "x")) return std::nullopt;
  return words;
}

Json TextSchema(const Field& field) {
  Json schema = {{"type", "string"}};
  if (std::optional<std::vector<std::string>> words = Words(field)) {
    schema["enum"] = *words;
  } else {
    schema["minLength"] = 1;
    schema["maxLength"] = kTextBytes;
  }
  return schema;
}

Json SchemaOf(const std::string& path);

Json ObjectSchema(const std::string& path) {
  Json schema = {{"type", "object"}};
  for (const std::string& key : FieldKeys(path)) {
    std::string child = path.empty() ? key : path + "." + key;
    schema["properties"][key] = SchemaOf(child);
  }
  if (!schema.contains("properties")) schema["x-kubernetes-preserve-unknown-fields"] = true;
  return schema;
}

Json SchemaOf(const std::string& path) {
  const Field& field = *FindField(path);
  const std::string& type = field.doc.type;
  Json schema;
  if (type == "integer") {
    schema = IntegerSchema(field);
  } else if (type == "string") {
    schema = TextSchema(field);
  } else if (type == "boolean") {
    schema = {{"type", "boolean"}};
  } else if (type == "intOrString") {
    schema = {{"x-kubernetes-int-or-string", true}};
  } else if (type == "stringList") {
    schema = {{"type", "array"},
              {"maxItems", kListItems},
              {"items", {{"type", "string"}, {"minLength", 1}, {"maxLength", kListItems}}}};
  } else if (type == "map") {
    schema = {{"type", "object"},
              {"maxProperties", kListItems},
              {"additionalProperties", SchemaOf(path + ".*")}};
  } else {
    Check(type == "object", "the field table knows no other type");
    schema = ObjectSchema(path);
  }
  Json described = {{"description", field.doc.allowed}};
  if (!field.doc.fallback.empty())
    described["description"] = field.doc.allowed + "; default " + field.doc.fallback;
  described.update(schema);
  return described;
}

}  // namespace

Json ModelSchema() {
  Json schema = {{"description", "The ModelSpec, as `ashlar serve -f` reads it."}};
  schema.update(ObjectSchema(""));
  return schema;
}

std::string ModelSchemaYaml(int spaces) {
  std::istringstream lines(YamlOf(ModelSchema()));
  std::string out;
  for (std::string line; std::getline(lines, line);)
    out += std::string(static_cast<size_t>(spaces), ' ') + line + "\n";
  return out;
}

}  // namespace ashlar::hooks
