// One YAML document as a tree with the place of every node, built from yaml-cpp's events under a
// budget. Scalars keep their text; nothing is resolved, merged or expanded.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/problem.h"

namespace ashlar {

struct YamlLimits {
  int nodes = 10'000;  // keys, scalars, lists and maps together
  int depth = 32;      // lists and maps inside one another
};

struct YamlNode {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  bool quoted = false;   // in quotes, or a block scalar: text, whatever it looks like
  bool written = false;  // a null that stands there as a word, not as nothing
  bool anchored = false, alias = false, tagged = false;
  int line = 1, column = 1;  // from 1; columns count bytes
  std::string text;
  std::vector<YamlNode> items;  // list: the items; map: key, value, key, value

  bool is_map() const { return kind == Kind::kMap; }
  bool is_list() const { return kind == Kind::kList; }
  bool is_scalar() const { return kind == Kind::kScalar; }
  bool is_null() const { return kind == Kind::kNull; }
  // The value of the first such key of a map, or null.
  const YamlNode* Find(std::string_view key) const;
};

struct YamlTree {
  YamlNode root;
  Problems problems;  // when not empty, `root` is not to be used
};

// Refuses what no tree can be made of: text that is not UTF-8, syntax errors, an exceeded limit, no
// document or several.
YamlTree ParseYaml(std::string_view text, const std::string& name, const YamlLimits& limits = {});

// How a node is called in messages: `24`, `"24"`, "a list", "a map", "nothing".
std::string Describe(const YamlNode& node);

}  // namespace ashlar
