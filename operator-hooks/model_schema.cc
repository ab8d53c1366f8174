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

// What the readers do not bound, the API server must: a text, a list and a map.
constexpr int64_t kTextBytes = 4096;
constexpr int kListItems = 64;
constexpr int64_t kLargest = int64_t{1} << 40;

YamlNode Scalar(std::string text) {
  YamlNode node;
  node.kind = YamlNode::Kind::kScalar;
  node.text = std::move(text);
  return node;
}

bool Accepts(const Field& field, const YamlNode& node) {
  Spec scratch;
  return field.read(node, "default", scratch).mistakes.empty();
}

// The last value that is accepted on the way from an accepted one to a refused one.
template <class Accepted>
int64_t Boundary(int64_t accepted, int64_t refused, Accepted&& is_accepted) {
  while (std::abs(refused - accepted) > 1) {
    int64_t middle = accepted + (refused - accepted) / 2;
    (is_accepted(middle) ? accepted : refused) = middle;
  }
  return accepted;
}

void AddBounds(const Field& field, Json& schema) {
  auto accepts = [&](int64_t value) { return Accepts(field, Scalar(std::to_string(value))); };
  int64_t inside = 1;
  while (!accepts(inside)) {
    inside *= 2;
    Check(inside < kLargest, "every integer field accepts a power of two");
  }
  schema["minimum"] = Boundary(inside, -1, accepts);
  schema["maximum"] = Boundary(inside, kLargest, accepts);
}

// Bounds of a text's length; `in_place` makes the node that the reader is given.
template <class InPlace>
void AddLengths(const Field& field, Json& schema, InPlace&& in_place) {
  schema["minLength"] = 1;
  schema["maxLength"] = kTextBytes;
  for (char letter : {'a', 'A'}) {
    auto accepts = [&](int64_t size) {
      return Accepts(field, in_place(std::string(static_cast<size_t>(size), letter)));
    };
    if (!accepts(1)) continue;
    schema["maxLength"] = Boundary(1, kTextBytes + 1, accepts);
    return;
  }
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
                         [&](const std::string& word) { return Accepts(field, Scalar(word)); });
  if (!all || Accepts(field, Scalar("x"))) return std::nullopt;
  return words;
}

Json TextSchema(const Field& field) {
  Json schema = {{"type", "string"}};
  if (std::optional<std::vector<std::string>> words = Words(field)) {
    schema["enum"] = *words;
  } else {
    AddLengths(field, schema, Scalar);
  }
  return schema;
}

// A list of texts.
Json ListSchema(const Field& field) {
  Json items = {{"type", "string"}};
  AddLengths(field, items, [](std::string text) {
    YamlNode list;
    list.kind = YamlNode::Kind::kList;
    list.items.push_back(Scalar(std::move(text)));
    return list;
  });
  return {{"type", "array"}, {"maxItems", kListItems}, {"items", items}};
}

// An integer within its bounds, or the one word before the comma of "auto, or a positive integer".
Json IntOrStringSchema(const Field& field) {
  Json schema = {{"x-kubernetes-int-or-string", true}};
  AddBounds(field, schema);
  std::string word = field.doc.allowed.substr(0, field.doc.allowed.find(','));
  Check(Accepts(field, Scalar(word)) && !Accepts(field, Scalar("x")), "the field's only word");
  schema["pattern"] = "^" + word + "$";
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
    schema = {{"type", "integer"}};
    AddBounds(field, schema);
  } else if (type == "string") {
    schema = TextSchema(field);
  } else if (type == "boolean") {
    schema = {{"type", "boolean"}};
  } else if (type == "intOrString") {
    schema = IntOrStringSchema(field);
  } else if (type == "stringList") {
    schema = ListSchema(field);
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
