#include "serve/errors.h"

#include <algorithm>

namespace ashlar {

const ErrorRow& Info(ErrorCode code) {
  const ErrorRow& row = kErrors[static_cast<size_t>(code)];
  Check(row.code == code, "kErrors is in the order of ErrorCode");
  return row;
}

namespace {

// Codes about one field of the body.
bool IsAboutField(ErrorCode code) {
  return code >= ErrorCode::kMissing && code <= ErrorCode::kContextLength;
}

}  // namespace

Json ErrorJson(const ApiError& error) {
  const ErrorRow& row = Info(error.code);
  bool has_param = (IsAboutField(error.code) || error.code == ErrorCode::kModelNotFound) &&
                   !error.problem.place.empty();
  std::string message = error.problem.Text();
  if (message.empty()) message = row.meaning;
  if (!error.more.empty()) message += "\n" + Text(error.more);
  return {{"error",
           {{"message", message},
            {"type", row.type},
            {"param", has_param ? Json(error.problem.place) : Json(nullptr)},
            {"code", row.name}}}};
}

HttpHeaders ErrorHeaders(ErrorCode code) {
  const ErrorRow& row = Info(code);
  HttpHeaders headers = {{"Content-Type", "application/json"}};
  if (row.retry == Retry::kNo) headers.emplace_back("x-should-retry", "false");
  if (row.retry_after_ms > 0) {
    headers.emplace_back("Retry-After", std::to_string((row.retry_after_ms + 999) / 1000));
    headers.emplace_back("retry-after-ms", std::to_string(row.retry_after_ms));
  }
  return headers;
}

ErrorCode CodeOfHttpStatus(int status) {
  switch (status) {
    case 400:
      return ErrorCode::kMalformedHttp;
    case 401:
      return ErrorCode::kBadKey;
    case 404:
      return ErrorCode::kRouteNotFound;
    case 503:
      return ErrorCode::kConnections;
    default:
      break;
  }
  auto row = std::find_if(kErrors.begin(), kErrors.end(),
                          [status](const ErrorRow& r) { return r.status == status; });
  return row == kErrors.end() || status == 500 ? ErrorCode::kInternal : row->code;
}

}  // namespace ashlar
