#include "import/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "spec/spec.h"

namespace ashlar {
namespace {

TEST(Flags, EachRowSaysWhatBecomesOfIt) {
  std::set<std::string> fields;
  for (const SpecField& field : SpecFields()) fields.insert(field.path);
  std::set<std::string_view> aliases;
  for (const Flag& flag : Flags()) {
    bool mapped = flag.outcome == ImportNote::Outcome::kMapped;
    EXPECT_EQ(mapped, !flag.field.empty()) << flag.name;
    if (mapped) {
      EXPECT_TRUE(fields.contains(std::string(flag.field))) << flag.name;
    }
    EXPECT_TRUE(mapped || flag.convert != nullptr || !flag.text.empty()) << flag.name;
    if (!flag.alias.empty()) {
      EXPECT_TRUE(aliases.insert(flag.alias).second) << flag.name;
    }
  }
  EXPECT_GE(Flags().size(), 60u);
}

TEST(Flags, AreFoundByEitherSpelling) {
  EXPECT_EQ(FindFlag("max-model-len"), FindFlag("max_model_len"));
  EXPECT_EQ(FindAlias("tp"), FindFlag("tensor-parallel-size"));
  EXPECT_EQ(FindFlag("max-model"), nullptr);
  EXPECT_EQ(FindAlias(""), nullptr);
}

}  // namespace
}  // namespace ashlar
