// Every error that the API answers with, as one table: status, type, code, and what clients shall
// do about it.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/problem.h"
#include "http/server.h"

namespace ashlar {

enum class ErrorCode {
  kInvalidJson,
  kMissing,
  kInvalidType,
  kInvalidValue,
  kUnknownField,
  kUnsupported,
  kContextLength,
  kTemplate,
  kMalformedHttp,
  kBadKey,
  kModelNotFound,
  kRouteNotFound,
  kMethod,
  kTooSlow,
  kBodyTooLarge,
  kUriTooLong,
  kMediaType,
  kExpectation,
  kHeadTooLarge,
  kHttpVersion,
  kQueueFull,
  kConnections,
  kLoading,
  kRejected,
  kDraining,
  kEngineFault,
  kGeneration,
  kInternal,
};

// What the official clients do by themselves is kDefault: they retry 408, 409, 429 and 5xx.
enum class Retry { kDefault, kNo };

struct ErrorRow {
  ErrorCode code;
  int status;
  std::string_view type;
  std::string_view name;  // `code` on the wire; never changes
  Retry retry;
  int retry_after_ms;  // 0: not said
  std::string_view meaning;
};

inline constexpr std::string_view kInvalidRequest = "invalid_request_error";
inline constexpr std::string_view kServerError = "server_error";

inline constexpr std::array<ErrorRow, 28> kErrors = {{
    {ErrorCode::kInvalidJson, 400, kInvalidRequest, "invalid_json", Retry::kDefault, 0,
     "the body is not one JSON object within the limits"},
    {ErrorCode::kMissing, 400, kInvalidRequest, "missing_required_parameter", Retry::kDefault, 0,
     "a field that is needed is absent or null"},
    {ErrorCode::kInvalidType, 400, kInvalidRequest, "invalid_type", Retry::kDefault, 0,
     "a field has another JSON type"},
    {ErrorCode::kInvalidValue, 400, kInvalidRequest, "invalid_value", Retry::kDefault, 0,
     "a field is out of its range"},
    {ErrorCode::kUnknownField, 400, kInvalidRequest, "unknown_parameter", Retry::kDefault, 0,
     "no field has that name"},
    {ErrorCode::kUnsupported, 400, kInvalidRequest, "unsupported_parameter", Retry::kDefault, 0,
     "a known field asks for what this build does not do"},
    {ErrorCode::kContextLength, 400, kInvalidRequest, "context_length_exceeded", Retry::kDefault, 0,
     "prompt and answer together are longer than the context"},
    {ErrorCode::kTemplate, 400, kInvalidRequest, "chat_template_error", Retry::kDefault, 0,
     "the chat template refused the messages, or there is none"},
    {ErrorCode::kMalformedHttp, 400, kInvalidRequest, "malformed_http", Retry::kDefault, 0,
     "the head or the framing of the request is not strict HTTP/1.1"},
    {ErrorCode::kBadKey, 401, "authentication_error", "invalid_api_key", Retry::kDefault, 0,
     "the key is missing or wrong"},
    {ErrorCode::kModelNotFound, 404, kInvalidRequest, "model_not_found", Retry::kDefault, 0,
     "no model of that name is served"},
    {ErrorCode::kRouteNotFound, 404, kInvalidRequest, "route_not_found", Retry::kDefault, 0,
     "no such path"},
    {ErrorCode::kMethod, 405, kInvalidRequest, "method_not_allowed", Retry::kDefault, 0,
     "the path takes another method"},
    {ErrorCode::kTooSlow, 408, kInvalidRequest, "request_timeout", Retry::kDefault, 0,
     "the request did not arrive in time"},
    {ErrorCode::kBodyTooLarge, 413, kInvalidRequest, "body_too_large", Retry::kDefault, 0,
     "the body is over its limit"},
    {ErrorCode::kUriTooLong, 414, kInvalidRequest, "uri_too_long", Retry::kDefault, 0,
     "the request line is over its limit"},
    {ErrorCode::kMediaType, 415, kInvalidRequest, "unsupported_media_type", Retry::kDefault, 0,
     "the body is compressed"},
    {ErrorCode::kExpectation, 417, kInvalidRequest, "expectation_failed", Retry::kDefault, 0,
     "an Expect header other than 100-continue"},
    {ErrorCode::kHeadTooLarge, 431, kInvalidRequest, "head_too_large", Retry::kDefault, 0,
     "the headers are over a limit"},
    {ErrorCode::kHttpVersion, 505, kInvalidRequest, "http_version", Retry::kNo, 0,
     "a version other than HTTP/1.1 and 1.0"},
    {ErrorCode::kQueueFull, 429, "rate_limit_error", "queue_full", Retry::kDefault, 1000,
     "too many requests or tokens wait"},
    {ErrorCode::kConnections, 503, kServerError, "too_many_connections", Retry::kDefault, 1000,
     "every connection is in use"},
    {ErrorCode::kLoading, 503, kServerError, "model_loading", Retry::kDefault, 2000,
     "the model is not ready yet"},
    {ErrorCode::kRejected, 503, kServerError, "model_rejected", Retry::kNo, 0,
     "the model was refused at start; /status says why"},
    {ErrorCode::kDraining, 503, kServerError, "draining", Retry::kDefault, 1000,
     "the server is shutting down"},
    {ErrorCode::kEngineFault, 500, kServerError, "engine_fault", Retry::kNo, 0,
     "the device failed; the server takes no more requests"},
    {ErrorCode::kGeneration, 500, kServerError, "generation_failed", Retry::kDefault, 0,
     "this request failed in the engine"},
    {ErrorCode::kInternal, 500, kServerError, "internal_error", Retry::kDefault, 0,
     "a bug of ours"},
}};

const ErrorRow& Info(ErrorCode code);

struct ApiError {
  ErrorCode code = ErrorCode::kInternal;
  Problem problem;     // for errors of a field, `place` is the field's path
  Problems more = {};  // further mistakes of the same body
};

// {"error": {message, type, param, code}}; all four keys always. The message has a line for each
// mistake; type, param and code are the first one's.
Json ErrorJson(const ApiError& error);
// Retry advice and content type.
HttpHeaders ErrorHeaders(ErrorCode code);
// The row for a refusal that the HTTP server makes by itself.
ErrorCode CodeOfHttpStatus(int status);

}  // namespace ashlar
