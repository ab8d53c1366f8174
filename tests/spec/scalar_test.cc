#include "spec/scalar.h"

#include <gtest/gtest.h>

namespace ashlar {
namespace {

TEST(StrictInteger, TakesDecimalDigitsOnly) {
  EXPECT_EQ(StrictInteger("0"), 0);
  EXPECT_EQ(StrictInteger("-16"), -16);
  EXPECT_EQ(StrictInteger("9223372036854775807"), INT64_MAX);
  for (const char* text : {"", "-", "+1", "01", "-01", "1_0", "0x1", "1e3", "1.0", " 1", "1 ",
                           "9223372036854775808", "99999999999999999999"}) {
    EXPECT_EQ(StrictInteger(text), std::nullopt) << text;
  }
}

TEST(MeantInteger, ReadsTheSpellingsOfYaml11) {
  EXPECT_EQ(MeantInteger("8_192"), 8192);
  EXPECT_EQ(MeantInteger("0x10"), 16);
  EXPECT_EQ(MeantInteger("0o17"), 15);
  EXPECT_EQ(MeantInteger("1e3"), 1000);
  EXPECT_EQ(MeantInteger("16.0"), 16);
  EXPECT_EQ(MeantInteger("+5"), 5);
  for (const char* text : {"", "_", "auto", "1.5", "1e99", "0x", "--1", ".", "e", "16 tokens"}) {
    EXPECT_EQ(MeantInteger(text), std::nullopt) << text;
  }
}

TEST(MeantBoolean, ReadsTheWordsOfYaml11) {
  for (const char* text : {"yes", "Yes", "ON", "y", "True", "true", "1"})
    EXPECT_EQ(MeantBoolean(text), true) << text;
  for (const char* text : {"no", "OFF", "n", "False", "0"})
    EXPECT_EQ(MeantBoolean(text), false) << text;
  EXPECT_EQ(MeantBoolean("maybe"), std::nullopt);
}

TEST(IsOtherThanText, KnowsWhatOtherReadersTakeForNumbersAndWords) {
  for (const char* text :
       {"",   "1",  "-1", "1.5",  "1e3",  ".5", "1_000", "0x1F",  "0o7",  "012",  "true",
        "No", "on", "y",  "null", "NULL", "~",  ".inf",  "-.Inf", ".NaN", "1e999"}) {
    EXPECT_TRUE(IsOtherThanText(text)) << text;
  }
  for (const char* text : {"smollm2", "0.0.0.0", "1.2.3", "/models", "nothing", "yes-model", "-x",
                           "12GiB", "80%", "inf", "nan", "e3", "7b"}) {
    EXPECT_FALSE(IsOtherThanText(text)) << text;
  }
}

TEST(IsJsonNumber, FollowsJsonsGrammar) {
  for (const char* text : {"0", "-0", "10", "1.5", "1e5", "1E-05", "-1.25e+3"})
    EXPECT_TRUE(IsJsonNumber(text)) << text;
  for (const char* text : {"", "-", "01", "1.", ".5", "+1", "1e", "1e+", "0x1", "1 ", "1_0"})
    EXPECT_FALSE(IsJsonNumber(text)) << text;
}

}  // namespace
}  // namespace ashlar
