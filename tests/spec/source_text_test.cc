#include "spec/source_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ashlar {
namespace {

using testing::StartsWith;

std::string Refusal(std::string_view text) { return Text(CheckSourceText(text, "m")); }

TEST(SourceText, AcceptsPlainText) { EXPECT_EQ(Refusal("a: é # 日本\r\nb: x\ty\n"), ""); }

TEST(SourceText, RefusesInvalidUtf8AtItsByte) {
  for (std::string_view bad :
       {"\x80", "\xc0\xaf", "\xc1\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\xff", "\xfe"}) {
    EXPECT_THAT(Refusal("a: 1\nb: " + std::string(bad)), StartsWith("m:2:4: byte 0x"));
  }
}

TEST(SourceText, RefusesControlCharactersOnce) {
  EXPECT_THAT(Refusal(std::string_view("a\0b\x01", 4)),
              StartsWith("m:1:2: control character \\x00"));
  EXPECT_EQ(CheckSourceText("\x01\x02\x7f", "m").size(), 1u);
  EXPECT_THAT(Refusal("a\xc2\x85"), StartsWith("m:1:2: control character"));
}

TEST(SourceText, RefusesTabsInTheIndentationOnly) {
  EXPECT_THAT(Refusal("a:\n  \tb: 1"), StartsWith("m:2:3: a tab"));
  EXPECT_EQ(Refusal("a:\tb\t# c"), "");
}

TEST(SourceText, RefusesMoreThanTheLimit) {
  EXPECT_EQ(Refusal(std::string(kSpecDocumentBytes, 'a')), "");
  EXPECT_THAT(Refusal(std::string(kSpecDocumentBytes + 1, 'a')), StartsWith("m: 262145 bytes"));
}

TEST(Printable, EscapesAndCuts) {
  EXPECT_EQ(Printable("a\nb\x1b\xff"), "a\\x0ab\\x1b\\xff");
  EXPECT_EQ(Printable("ééé", 3), "éé...");
}

}  // namespace
}  // namespace ashlar
