#include "spec/yaml_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <istream>
#include <streambuf>
#include <utility>

#include "spec/source_text.h"

namespace ashlar {
namespace {

// Thrown from inside yaml-cpp's parser, which cannot be stopped otherwise, and caught around it.
struct Stop {
  Problem problem;
};

std::string At(const std::string& name, int line, int column) {
  return fmt::format("{}:{}:{}", name, line, column);
}

class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view text, const std::string& name, const YamlLimits& limits)
      : text_(text), name_(name), limits_(limits) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 1) return;
    throw Stop{{At(name_, mark.line + 1, mark.column + 1), "a second document, or stray text",
                "one document in a file", "delete it, or move it to a file of its own"}};
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    YamlNode& node = Add(mark);
    node.anchored = anchor != 0;
    for (std::string_view word : {"null", "Null", "NULL", "~"}) {
      if (Rest(mark).starts_with(word)) node.written = true;
    }
    if (!node.written) MoveBack(node, static_cast<size_t>(mark.pos));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { Add(mark).alias = true; }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode& node = Add(mark);
    node.kind = YamlNode::Kind::kScalar;
    node.quoted = tag != "?";
    // yaml-cpp reports a quoted scalar and an explicit "!" with the same tag.
    node.tagged = (tag != "?" && tag != "!") || Rest(mark).starts_with('!');
    node.anchored = anchor != 0;
    node.text = value;
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, YamlNode::Kind::kList, tag, anchor);
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, YamlNode::Kind::kMap, tag, anchor);
  }
  void OnMapEnd() override { open_.pop_back(); }

  YamlNode root;

 private:
  std::string_view Rest(const YAML::Mark& mark) const {
    size_t position = static_cast<size_t>(mark.pos);
    return position < text_.size() ? text_.substr(position) : std::string_view();
  }

  // yaml-cpp places a missing value at whatever comes next, lines below perhaps; the dash or colon
  // that it is missing after is what people look for.
  void MoveBack(YamlNode& node, size_t position) const {
    position = std::min(position, text_.size());
    size_t end = text_.substr(0, position).find_last_not_of(" \t\r\n");
    if (end == text_.npos) return;
    std::string_view before = text_.substr(0, end);
    node.line -=
        static_cast<int>(std::count(text_.begin() + static_cast<ptrdiff_t>(end),
                                    text_.begin() + static_cast<ptrdiff_t>(position), '\n'));
    size_t line_end = before.rfind('\n');
    node.column = static_cast<int>(line_end == before.npos ? end + 1 : end - line_end);
  }

  YamlNode& Add(const YAML::Mark& mark) {
    if (++nodes_ > limits_.nodes) {
      throw Stop{{At(name_, mark.line + 1, mark.column + 1),
                  fmt::format("more than {} nodes", limits_.nodes),
                  fmt::format("at most {} keys, values, lists and maps", limits_.nodes),
                  "shorten the document"}};
    }
    YamlNode& node = open_.empty() ? root : open_.back()->items.emplace_back();
    node.line = mark.line + 1;
    node.column = mark.column + 1;
    return node;
  }

  void Open(const YAML::Mark& mark, YamlNode::Kind kind, const std::string& tag,
            YAML::anchor_t anchor) {
    if (static_cast<int>(open_.size()) >= limits_.depth) {
      throw Stop{{At(name_, mark.line + 1, mark.column + 1),
                  fmt::format("nested deeper than {} levels", limits_.depth),
                  fmt::format("at most {} lists and maps inside one another", limits_.depth),
                  "flatten the document"}};
    }
    YamlNode& node = Add(mark);
    node.kind = kind;
    node.tagged = (tag != "?" && !tag.empty());
    node.anchored = anchor != 0;
    open_.push_back(&node);
  }

  std::string_view text_;
  const std::string& name_;
  const YamlLimits& limits_;
  // Lists and maps from the root to the innermost. An open node never moves: its parent's items
  // grow only after it is closed.
  std::vector<YamlNode*> open_;
  int nodes_ = 0;
  int documents_ = 0;
};

// Lets yaml-cpp read the text where it lies.
class ViewBuffer final : public std::streambuf {
 public:
  explicit ViewBuffer(std::string_view text) {
    char* front = const_cast<char*>(text.data());
    setg(front, front, front + text.size());
  }
};

// The wording of yaml-cpp, but for the cases whose cause is usually another one.
Problem SyntaxProblem(const YAML::Exception& error, const std::string& name) {
  std::string place = At(name, error.mark.line + 1, error.mark.column + 1);
  std::string found = fmt::format("not YAML here ({})", Printable(error.msg, 120));
  std::string next = "mend the syntax; often a colon, quote or bracket is missing just before";
  if (error.msg.find("referenced anchor") != std::string::npos) {
    return {place, "an alias (*) without an anchor", "values written out", "write the value here"};
  }
  if (error.msg == "illegal map value") {
    next = "put quotes around a value that holds \": \"";
  } else if (error.msg.starts_with("end of map not found") ||
             error.msg.starts_with("end of sequence not found")) {
    next = "align the keys of one map in one column";
  }
  return {place, found, "one YAML document", next};
}

bool IsEmptyRoot(const YamlNode& root) { return root.is_null() && !root.written && !root.alias; }

}  // namespace

const YamlNode* YamlNode::Find(std::string_view key) const {
  if (!is_map()) return nullptr;
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    if (items[i].is_scalar() && items[i].text == key) return &items[i + 1];
  }
  return nullptr;
}

YamlTree ParseYaml(std::string_view text, const std::string& name, const YamlLimits& limits) {
  YamlTree tree;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark says nothing
  tree.problems = CheckSourceText(text, name);
  if (!tree.problems.empty()) return tree;
  Problem empty{At(name, 1, 1), "the document is empty", "a map with at least the key source",
                "write a ModelSpec"};
  try {
    ViewBuffer buffer(text);
    std::istream stream(&buffer);
    YAML::Parser parser(stream);
    TreeBuilder builder(text, name, limits);
    // Twice at most: on a stray "," yaml-cpp yields empty documents for ever.
    if (!parser.HandleNextDocument(builder)) {
      tree.problems.push_back(empty);
      return tree;
    }
    tree.root = std::exchange(builder.root, {});
    parser.HandleNextDocument(builder);
    if (IsEmptyRoot(tree.root)) tree.problems.push_back(empty);
  } catch (const Stop& stop) {
    tree.problems.push_back(stop.problem);
  } catch (const YAML::Exception& error) {
    tree.problems.push_back(SyntaxProblem(error, name));
  }
  return tree;
}

std::string Describe(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return node.alias ? "an alias" : node.written ? "null" : "nothing";
    case YamlNode::Kind::kList:
      return "a list";
    case YamlNode::Kind::kMap:
      return "a map";
    case YamlNode::Kind::kScalar:
      break;
  }
  return node.quoted ? fmt::format("\"{}\"", Printable(node.text)) : Printable(node.text);
}

}  // namespace ashlar
