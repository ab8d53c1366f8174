#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ashlar {
namespace {

using testing::HasSubstr;

std::string Refusal(std::string_view text, const JsonLimits& limits = {}) {
  Result<Json> json = ParseJson(text, "body", limits);
  return json.ok() ? "accepted" : Text(json.problems());
}

TEST(Json, KeepsKeyOrder) {
  EXPECT_EQ(DumpJson(*ParseJson(R"({"b":1,"a":[true,null,"x"]})", "body")),
            R"({"b":1,"a":[true,null,"x"]})");
}

TEST(Json, RefusesDuplicateNames) {
  EXPECT_THAT(Refusal(R"({"a":{"b":1,"b":2}})"), HasSubstr("\"b\" stands twice"));
}

TEST(Json, SameNameInSiblingObjectsIsFine) {
  EXPECT_EQ(Refusal(R"([{"a":1},{"a":2}])"), "accepted");
}

TEST(Json, RefusesNestingAboveTheLimit) {
  std::string deep(65, '[');
  EXPECT_THAT(Refusal(deep + std::string(65, ']')), HasSubstr("nested deeper than 64"));
  EXPECT_EQ(Refusal(std::string(64, '[') + std::string(64, ']')), "accepted");
}

TEST(Json, RefusesTooManyValues) {
  EXPECT_THAT(Refusal(R"(["a","b","c"])", {.depth = 4, .values = 3}), HasSubstr("too many values"));
}

TEST(Json, RefusesBrokenText) {
  for (const char* text : {"", "{", "nul", "[1,]", "{} {}", "\"\xff\"", "[1e999]", "\"\\ud800\""}) {
    EXPECT_THAT(Refusal(text), HasSubstr("body")) << text;
  }
}

TEST(Json, AZeroByteDoesNotEndTheText) {
  EXPECT_THAT(Refusal(std::string_view("{}\0garbage", 10)), HasSubstr("body byte 3: a zero byte"));
}

TEST(Json, ManyKeysAreReadInTheirOrder) {
  std::string text = "{";
  for (int i = 0; i < 50'000; ++i)
    text += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":[" + std::to_string(i) + "]";
  Result<Json> json = ParseJson(text + "}", "body", {.depth = 4, .values = 1'000'000});
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json->size(), 50'000u);
  EXPECT_EQ(std::prev(json->end()).key(), "49999");
}

TEST(Json, CanonicalFormSortsAndDropsNulls) {
  EXPECT_EQ(CanonicalJson(*ParseJson(R"({"b":1.0,"a":{"y":null,"x":0.5}})", "body")),
            R"({"a":{"x":0.5},"b":1})");
}

TEST(Json, DumpReplacesInvalidUtf8) { EXPECT_EQ(DumpJson(Json("\xf0\x9f")), "\"\xef\xbf\xbd\""); }

}  // namespace
}  // namespace ashlar
