#include "serve/api_keys.h"

#include <gtest/gtest.h>

#include <fstream>

namespace ashlar {
namespace {

std::string Write(const std::string& text) {
  std::string path = testing::TempDir() + "api_keys_test";
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

TEST(ApiKeys, AdmitsEachKeyOfTheFileAndNothingElse) {
  auto keys = ApiKeys::Load(Write("first\r\n\nsecond"));
  ASSERT_TRUE(keys.ok()) << Text(keys.problems());
  EXPECT_TRUE(keys->Admits("Bearer first"));
  EXPECT_TRUE(keys->Admits("bearer second"));
  for (const char* wrong : {"", "first", "Bearer", "Bearer ", "Bearer firs", "Bearer first ",
                            "Bearer third", "Basic first", "Bearer first\r"}) {
    EXPECT_FALSE(keys->Admits(wrong)) << wrong;
  }
}

TEST(ApiKeys, NoKeysAdmitEveryone) { EXPECT_TRUE(ApiKeys().Admits("")); }

TEST(ApiKeys, GuardsAllButHealthMetricsAndStatus) {
  for (const char* path : {"/livez", "/readyz", "/health", "/metrics", "/status"}) {
    EXPECT_FALSE(ApiKeys::Guards(path)) << path;
  }
  for (const char* path : {"/v1/models", "/v1/completions", "/", "/metrics/", "/unknown"}) {
    EXPECT_TRUE(ApiKeys::Guards(path)) << path;
  }
}

TEST(ApiKeys, RefusesAFileWithoutKeysAndNeverQuotesOne) {
  EXPECT_FALSE(ApiKeys::Load("/nonexistent/keys").ok());
  auto empty = ApiKeys::Load(Write("\n\n"));
  ASSERT_FALSE(empty.ok());
  EXPECT_NE(Text(empty.problems()).find("no key in the file"), std::string::npos);
  auto spaced = ApiKeys::Load(Write("fine\nse cret\n"));
  ASSERT_FALSE(spaced.ok());
  EXPECT_NE(spaced.problems()[0].place.find(":2"), std::string::npos);
  EXPECT_EQ(Text(spaced.problems()).find("cret"), std::string::npos);
}

}  // namespace
}  // namespace ashlar
