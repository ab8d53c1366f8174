#include "import/words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ashlar {
namespace {

using testing::ElementsAre;

TEST(ShellCommands, ReadsQuotesEscapesAndCommentsAsSh) {
  auto commands = ShellCommands(
      "pip install x && vllm serve \"a b\" --x='$y \"z\"' --p=\"q\\\"r\" c\\ d \\\n  --last \"\" # "
      "e\n"
      "sleep 1; echo done",
      "f");
  ASSERT_TRUE(commands.ok());
  EXPECT_THAT(*commands, ElementsAre(ElementsAre("pip", "install", "x"),
                                     ElementsAre("vllm", "serve", "a b", "--x=$y \"z\"", "--p=q\"r",
                                                 "c d", "--last", ""),
                                     ElementsAre("sleep", "1"), ElementsAre("echo", "done")));
}

TEST(ShellCommands, AnOpenQuoteIsAProblem) {
  for (const char* script : {"a 'b", "a \"b", "\"\\"}) {
    auto commands = ShellCommands(script, "pod.yaml");
    ASSERT_FALSE(commands.ok()) << script;
    EXPECT_THAT(Text(commands.problems()), testing::HasSubstr("never closed")) << script;
  }
}

TEST(Substitute, TakesKubernetesAndShellReferences) {
  std::map<std::string, std::string> values = {{"A", "1"}, {"LONG_2", "x y"}};
  EXPECT_EQ(Substitute("$(A) $(B) $A ${A}", values, false), "1 $(B) $A ${A}");
  EXPECT_EQ(Substitute("$(A) $A ${LONG_2}/$LONG_2 $B $", values, true), "1 1 x y/x y $B $");
  EXPECT_EQ(Substitute("$(A ${A $", values, true), "$(A ${A $");
}

}  // namespace
}  // namespace ashlar
