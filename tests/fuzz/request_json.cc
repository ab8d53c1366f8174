// A request body from anybody: refused with one error in four parts, or typed with every value in
// its range.
#include <cmath>
#include <string>

#include "base/check.h"
#include "serve/openai_request.h"

namespace ashlar {
namespace {

void CheckRequest(const ApiRequest& request, const RequestLimits& limits) {
  const Sampling& sampling = request.sampling;
  auto in_vocabulary = [&](int32_t id) { return id >= 0 && id < limits.vocabulary; };
  Check(request.n >= 1 && request.n <= limits.choices, "n in range");
  Check(sampling.temperature >= 0 && sampling.temperature <= 2, "temperature in range");
  Check(sampling.top_p > 0 && sampling.top_p <= 1, "top_p in range");
  Check(sampling.min_p >= 0 && sampling.min_p <= 1, "min_p in range");
  Check(sampling.top_k >= 0, "top_k in range");
  Check(sampling.repetition_penalty > 0 && std::isfinite(sampling.repetition_penalty), "penalty");
  Check(sampling.logprobs >= -1 && sampling.logprobs <= limits.logprobs, "logprobs in range");
  Check(sampling.prompt_logprobs <= limits.logprobs, "prompt_logprobs in range");
  Check(!request.max_tokens || *request.max_tokens >= 1, "max_tokens in range");
  Check(request.stops.size() <= static_cast<size_t>(limits.stops), "few stops");
  for (const std::string& stop : request.stops) {
    Check(!stop.empty() && stop.size() <= limits.stop_bytes, "no empty and no long stop");
  }
  for (int32_t id : request.stop_ids) Check(in_vocabulary(id), "stop ids in the vocabulary");
  for (const auto& [id, bias] : sampling.logit_bias) {
    Check(in_vocabulary(id) && bias >= -100 && bias <= 100, "biases in range");
  }
  if (request.chat()) {
    const Json& document = std::get<ChatInput>(request.input).document;
    Check(document["messages"].is_array() && !document["messages"].empty(), "messages");
    for (const Json& message : document["messages"]) {
      Check(message["role"].is_string() && message["content"].is_string(), "plain messages");
    }
    return;
  }
  const auto& prompts = std::get<std::vector<Prompt>>(request.input);
  Check(!prompts.empty() && prompts.size() <= static_cast<size_t>(limits.prompts), "prompts");
  for (const Prompt& prompt : prompts) {
    const auto* ids = std::get_if<std::vector<int32_t>>(&prompt);
    if (ids == nullptr) continue;
    Check(!ids->empty() && static_cast<int64_t>(ids->size()) <= limits.context_length, "ids fit");
    for (int32_t id : *ids) Check(in_vocabulary(id), "ids in the vocabulary");
  }
}

}  // namespace
}  // namespace ashlar

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ashlar;
  RequestLimits limits;
  limits.context_length = 64;
  limits.vocabulary = 1000;
  std::string_view body(reinterpret_cast<const char*>(data), size);
  for (auto parse : {ParseCompletion, ParseChat}) {
    ParsedRequest parsed = parse(body, limits);
    if (const auto* request = std::get_if<ApiRequest>(&parsed)) {
      CheckRequest(*request, limits);
      continue;
    }
    const ApiError& error = std::get<ApiError>(parsed);
    Check(Info(error.code).status == 400, "a bad body is the client's mistake");
    Check(!error.problem.found.empty() && !error.problem.allowed.empty(), "an error says what");
    Json wire = Json::parse(DumpJson(ErrorJson(error)));
    Check(wire["error"].size() == 4, "an error has its four keys");
  }
  return 0;
}
