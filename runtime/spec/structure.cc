#include "spec/structure.h"

#include <fmt/format.h>

#include <map>
#include <string_view>

#include "spec/source_text.h"

namespace ashlar {
namespace {

class Walk {
 public:
  explicit Walk(const StructureReport& report) : report_(report) {}

  void Node(const YamlNode& node, const std::string& path) {
    CheckMachinery(node, path);
    if (node.is_list()) {
      for (size_t i = 0; i < node.items.size(); ++i)
        Node(node.items[i], fmt::format("{}[{}]", path, i));
    }
    if (!node.is_map()) return;
    std::map<std::string_view, const YamlNode*> seen;
    for (size_t i = 0; i + 1 < node.items.size(); i += 2) {
      const YamlNode& key = node.items[i];
      std::string child = ChildPath(path, key);
      CheckKey(key, child);
      if (key.is_scalar()) {
        auto [first, fresh] = seen.emplace(key.text, &key);
        if (!fresh) {
          report_(child, key, fmt::format("{} stands twice", Describe(key)),
                  fmt::format("each key once; the first is at {}:{}", first->second->line,
                              first->second->column),
                  "delete one of the two");
        }
      }
      Node(node.items[i + 1], child);
    }
  }

 private:
  void CheckMachinery(const YamlNode& node, const std::string& path) {
    if (node.alias)
      report_(path, node, "an alias (*)", "values written out", "repeat the value here");
    if (node.anchored)
      report_(path, node, "an anchor (&)", "values without anchors", "delete the anchor");
    if (node.tagged)
      report_(path, node, "a tag (!)", "values without tags",
              "delete the tag; quote the value if it is text");
  }

  void CheckKey(const YamlNode& key, const std::string& path) {
    if (!key.is_scalar()) {
      if (!key.alias)
        report_(path, key, fmt::format("{} as a key", Describe(key)), "keys that are plain words",
                "write a word before the colon");
    } else if (key.text == "<<" && !key.quoted) {
      report_(path, key, "a merge key (<<)", "keys written out", "repeat the keys here");
    }
    CheckMachinery(key, path);
  }

  const StructureReport& report_;
};

}  // namespace

void CheckStructure(const YamlNode& root, const StructureReport& report) {
  Walk(report).Node(root, "");
}

std::string ChildPath(const std::string& path, const YamlNode& key) {
  std::string name = key.is_scalar() ? Printable(key.text) : "?";
  return path.empty() ? name : path + "." + name;
}

}  // namespace ashlar
