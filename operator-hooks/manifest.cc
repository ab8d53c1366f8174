#include "operator-hooks/manifest.h"

#include <fmt/format.h>

#include <charconv>

#include "spec/field_readers.h"
#include "spec/scalar.h"
#include "spec/structure.h"
#include "spec/yaml_tree.h"

namespace ashlar::hooks {
namespace {

class Converter {
 public:
  explicit Converter(const std::string& name) : name_(name) {}

  Json Convert(const YamlNode& node) {
    switch (node.kind) {
      case YamlNode::Kind::kNull:
        return nullptr;
      case YamlNode::Kind::kScalar:
        return Scalar(node);
      case YamlNode::Kind::kList: {
        Json list = Json::array();
        for (const YamlNode& item : node.items) list.push_back(Convert(item));
        return list;
      }
      case YamlNode::Kind::kMap:
        break;
    }
    Json object = Json::object();
    for (size_t i = 0; i + 1 < node.items.size(); i += 2)
      Append(object, node.items[i].text, Convert(node.items[i + 1]));
    return object;
  }

  Problems problems;

 private:
  Json Scalar(const YamlNode& node) {
    if (node.quoted) return node.text;
    if (node.text == "true" || node.text == "false") return node.text == "true";
    if (std::optional<int64_t> integer = StrictInteger(node.text)) return *integer;
    if (IsJsonNumber(node.text)) {
      double number = 0;
      std::from_chars(node.text.data(), node.text.data() + node.text.size(), number);
      return number;
    }
    if (IsOtherThanText(node.text)) {
      problems.push_back({fmt::format("{}:{}:{}", name_, node.line, node.column), Describe(node),
                          "values that every YAML reader reads alike",
                          "put quotes around it, or write true, false or a plain number"});
    }
    return node.text;
  }

  const std::string& name_;
};

}  // namespace

Result<Json> ManifestToJson(std::string_view text, const std::string& name) {
  YamlTree tree = ParseYaml(text, name);
  if (!tree.problems.empty()) return tree.problems;
  Converter converter(name);
  CheckStructure(tree.root, [&](const std::string& path, const YamlNode& at, std::string found,
                                std::string allowed, std::string next) {
    converter.problems.push_back({fmt::format("{}:{}:{} {}", name, at.line, at.column, path),
                                  std::move(found), std::move(allowed), std::move(next)});
  });
  if (!converter.problems.empty()) return converter.problems;
  Json json = converter.Convert(tree.root);
  if (!converter.problems.empty()) return converter.problems;
  return json;
}

}  // namespace ashlar::hooks
