#include "spec/yaml_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ashlar {
namespace {

using testing::StartsWith;

std::string Refusal(std::string_view text, const YamlLimits& limits = {}) {
  YamlTree tree = ParseYaml(text, "m", limits);
  return tree.problems.empty() ? "accepted" : Text(tree.problems);
}

TEST(YamlTree, KeepsTextAndPlaces) {
  YamlTree tree = ParseYaml("a: 012\nb:\n  - \"x\"\n  - é: ~\n", "m");
  ASSERT_TRUE(tree.problems.empty()) << Text(tree.problems);
  const YamlNode* a = tree.root.Find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->text, "012");
  EXPECT_FALSE(a->quoted);
  EXPECT_EQ(a->column, 4);
  const YamlNode* b = tree.root.Find("b");
  ASSERT_TRUE(b != nullptr && b->is_list());
  EXPECT_TRUE(b->items[0].quoted);
  EXPECT_EQ(b->items[1].items[1].line, 4);
  EXPECT_EQ(b->items[1].items[1].column, 9);  // bytes
  EXPECT_TRUE(b->items[1].items[1].written);
}

TEST(YamlTree, CarriageReturnsDoNotMovePlaces) {
  YamlTree tree = ParseYaml("a: 1\r\nb: 2\r\n", "m");
  ASSERT_TRUE(tree.problems.empty()) << Text(tree.problems);
  EXPECT_EQ(tree.root.items[3].text, "2");
  EXPECT_EQ(tree.root.items[3].line, 2);
  EXPECT_EQ(tree.root.items[3].column, 4);
}

TEST(YamlTree, MissingValuesStandWhereTheyAreMissed) {
  YamlTree tree = ParseYaml("a:\n  - b\n  -\n\n\nc: 1\n", "m");
  ASSERT_TRUE(tree.problems.empty()) << Text(tree.problems);
  const YamlNode& missing = tree.root.items[1].items[1];
  EXPECT_TRUE(missing.is_null());
  EXPECT_EQ(missing.line, 3);
  EXPECT_EQ(missing.column, 3);
}

TEST(YamlTree, MarksYamlMachinery) {
  YamlTree tree = ParseYaml("a: &x 1\nb: *x\nc: !t 1\nd: ! 1\ne: &y\nf: !!map {}\n", "m");
  ASSERT_TRUE(tree.problems.empty()) << Text(tree.problems);
  EXPECT_TRUE(tree.root.Find("a")->anchored);
  EXPECT_TRUE(tree.root.Find("b")->alias);
  EXPECT_TRUE(tree.root.Find("c")->tagged);
  EXPECT_TRUE(tree.root.Find("d")->tagged);
  EXPECT_TRUE(tree.root.Find("e")->anchored);
  EXPECT_TRUE(tree.root.Find("f")->tagged);
}

TEST(YamlTree, SkipsAByteOrderMark) {
  YamlTree tree = ParseYaml(
      "\xef\xbb\xbf"
      "a: 1\n",
      "m");
  ASSERT_TRUE(tree.problems.empty()) << Text(tree.problems);
  EXPECT_EQ(tree.root.items[0].column, 1);
}

TEST(YamlTree, RefusesDepthAboveTheLimitAtItsPlace) {
  EXPECT_EQ(Refusal("[[[1]]]", {.nodes = 100, .depth = 3}), "accepted");
  EXPECT_THAT(Refusal("[[[[1]]]]", {.nodes = 100, .depth = 3}),
              StartsWith("m:1:4: nested deeper than 3"));
}

TEST(YamlTree, RefusesNodesAboveTheLimit) {
  EXPECT_EQ(Refusal("{a: 1}", {.nodes = 3, .depth = 3}), "accepted");
  EXPECT_THAT(Refusal("{a: 1, b: 2}", {.nodes = 3, .depth = 3}),
              StartsWith("m:1:8: more than 3 nodes"));
}

TEST(YamlTree, RefusesHostileTextInBoundedTime) {
  for (std::string piece : {"[", "{", "- ", "? ", "a: ", "{a: ", "[[],", "!a ", "&a ", "\"", "'",
                            "| ", "%", "---\n", ",", ":", "*a", "a: b\n"}) {
    std::string text;
    while (text.size() + piece.size() <= 64 * 1024) text += piece;
    SCOPED_TRACE(piece);
    YamlTree tree = ParseYaml(text, "m");
    EXPECT_FALSE(tree.problems.empty() && tree.root.is_null());
  }
}

TEST(YamlTree, AnAliasBombIsNotExpanded) {
  std::string bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c <= 'j'; ++c) {
    char before = static_cast<char>(c - 1);
    bomb += std::string(1, c) + ": &" + c + " [";
    for (int i = 0; i < 9; ++i) bomb += std::string("*") + before + (i < 8 ? ", " : "]\n");
  }
  YamlTree tree = ParseYaml(bomb, "m");
  ASSERT_TRUE(tree.problems.empty()) << Text(tree.problems);
  EXPECT_EQ(tree.root.items.size(), 20u);
  EXPECT_TRUE(tree.root.items[3].items[0].alias);
}

}  // namespace
}  // namespace ashlar
