#include "serve/errors.h"

#include <gtest/gtest.h>

#include <set>

namespace ashlar {
namespace {

TEST(Errors, TableIsInOrderAndCodesAreUnique) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kErrors.size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(kErrors[i].code), i);
    EXPECT_TRUE(names.insert(kErrors[i].name).second) << kErrors[i].name;
    EXPECT_EQ(&Info(kErrors[i].code), &kErrors[i]);
  }
}

TEST(Errors, EveryBodyHasAllFourKeys) {
  for (const ErrorRow& row : kErrors) {
    Json json = ErrorJson({row.code, {"field", "found", "allowed", "next"}});
    ASSERT_EQ(json["error"].size(), 4u);
    EXPECT_EQ(json["error"]["message"], "field: found: allowed; next");
    EXPECT_EQ(json["error"]["type"], row.type);
    EXPECT_EQ(json["error"]["code"], row.name);
    EXPECT_TRUE(json["error"].contains("param"));
  }
  EXPECT_EQ(ErrorJson({ErrorCode::kInvalidValue, {"n", "0", "1", ""}})["error"]["param"], "n");
  EXPECT_TRUE(ErrorJson({ErrorCode::kLoading, {}})["error"]["param"].is_null());
}

TEST(Errors, StatusesAndTypesAreThoseOfTheTable) {
  // Only overload and loading say when to come back; a deterministic fault says not to.
  for (const ErrorRow& row : kErrors) {
    bool server = row.status >= 500 && row.status != 505;
    EXPECT_EQ(row.type == kServerError, server) << row.name;
    if (row.status == 429) {
      EXPECT_EQ(row.type, "rate_limit_error");
    }
    if (row.status == 401) {
      EXPECT_EQ(row.type, "authentication_error");
    }
    if (row.retry_after_ms > 0) {
      EXPECT_TRUE(row.status == 429 || row.status == 503) << row.name;
    }
  }
  HttpHeaders queue = ErrorHeaders(ErrorCode::kQueueFull);
  EXPECT_NE(std::find(queue.begin(), queue.end(),
                      std::pair<std::string, std::string>("retry-after-ms", "1000")),
            queue.end());
  HttpHeaders fault = ErrorHeaders(ErrorCode::kEngineFault);
  EXPECT_NE(std::find(fault.begin(), fault.end(),
                      std::pair<std::string, std::string>("x-should-retry", "false")),
            fault.end());
}

TEST(Errors, EveryRefusalOfTheHttpServerHasARow) {
  for (int status : {400, 401, 404, 405, 408, 413, 414, 415, 417, 431, 500, 503, 505}) {
    EXPECT_EQ(Info(CodeOfHttpStatus(status)).status, status);
  }
  EXPECT_EQ(CodeOfHttpStatus(500), ErrorCode::kInternal);
}

}  // namespace
}  // namespace ashlar
