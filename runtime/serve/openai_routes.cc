#include "serve/openai_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "serve/generation.h"
#include "serve/new_id.h"
#include "serve/openai_request.h"
#include "serve/request_log.h"

namespace ashlar {
namespace {

// The client's id when it is harmless to repeat, else a new one.
std::string RequestId(const HttpRequest& request) {
  std::string_view given = request.Header("x-request-id");
  bool harmless =
      !given.empty() && given.size() <= 128 &&
      std::all_of(given.begin(), given.end(), [](char c) { return c > ' ' && c < 0x7f; });
  return harmless ? std::string(given) : NewId("req");
}

// "%2F" and its kind in the last part of a path; names of models hold slashes.
std::string DecodePercent(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    auto digit = [&](size_t at) {
      return at < text.size()
                 ? std::string_view("0123456789abcdef")
                       .find(static_cast<char>(tolower(static_cast<unsigned char>(text[at]))))
                 : std::string_view::npos;
    };
    size_t high = digit(i + 1), low = digit(i + 2);
    if (text[i] == '%' && high != std::string_view::npos && low != std::string_view::npos) {
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

ApiError UnknownModel(const std::string& asked, const std::string& served) {
  return {ErrorCode::kModelNotFound,
          {"model", fmt::format("\"{}\" is not served here", asked.substr(0, 256)),
           fmt::format("\"{}\"", served), "use the name that /v1/models lists"}};
}

// One request: counted while it lives; its end is counted and logged once.
class Exchange {
 public:
  Exchange(ApiRoute route, const HttpRequest& request, HttpResponder& responder,
           std::atomic<int64_t>& inflight, Metrics& metrics)
      : route_(route),
        request_(request),
        responder_(responder),
        inflight_(inflight),
        metrics_(metrics),
        id_(RequestId(request)),
        headers_{{"x-request-id", id_}} {
    ++inflight_;
  }
  ~Exchange() { --inflight_; }
  Exchange(const Exchange&) = delete;

  // Sent with every answer.
  const HttpHeaders& headers() const { return headers_; }

  void Send(const Json& body) {
    HttpHeaders headers = headers_;
    headers.emplace_back("Content-Type", "application/json");
    responder_.Send(200, headers, DumpJson(body));
    Close(200, "");
  }
  void Fail(const ApiError& error) {
    HttpHeaders headers = headers_;
    for (auto& header : ErrorHeaders(error.code)) headers.push_back(std::move(header));
    const ErrorRow& row = Info(error.code);
    responder_.Send(row.status, headers, DumpJson(ErrorJson(error)));
    Close(row.status, row.name);
  }
  // The answer has gone out, or only its error is left to send.
  void Finish(const GenerationReport& report) {
    if (report.error) return Fail(*report.error);
    if (report.status == 200) metrics_.Observe(route_, report, Seconds());
    Close(report.status, fmt::format("{} + {} tokens", report.usage.prompt_tokens,
                                     report.usage.completion_tokens));
  }

 private:
  void Close(int status, std::string_view note) {
    metrics_.CountRequest(route_, status);
    LogRequest(request_, status, Seconds(), id_, note);
  }
  double Seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  const ApiRoute route_;
  const HttpRequest& request_;
  HttpResponder& responder_;
  std::atomic<int64_t>& inflight_;
  Metrics& metrics_;
  const std::string id_;
  const HttpHeaders headers_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

std::vector<HttpRoute> OpenAiRoutes::Rows() {
  HttpHandler models = [this](const HttpRequest& request, HttpResponder& responder) {
    AnswerModels(request, responder);
  };
  auto generation = [this](ApiRoute route) -> HttpHandler {
    return [this, route](const HttpRequest& request, HttpResponder& responder) {
      AnswerGeneration(route, request, responder);
    };
  };
  return {{"GET", "/v1/models", models},
          {"GET", "/v1/models/*", models},
          {"POST", "/v1/completions", generation(ApiRoute::kCompletions)},
          {"POST", "/v1/chat/completions", generation(ApiRoute::kChat)}};
}

void OpenAiRoutes::Attach(Serving serving) {
  attached_at_ = std::time(nullptr);
  Check(serving_owner_ == nullptr, "one model to one server");
  serving_owner_ = std::make_unique<const Serving>(std::move(serving));
  serving_ = serving_owner_.get();
}

std::optional<ApiError> OpenAiRoutes::Unavailable() const {
  Readiness::Snapshot snapshot = readiness_.snapshot();
  // A draining server goes on serving until its listener closes.
  bool serves = snapshot.phase == Phase::kReady || snapshot.phase == Phase::kDraining;
  if (serves && serving() != nullptr && !ending_) return std::nullopt;
  ErrorCode code = ErrorCode::kLoading;
  if (snapshot.phase == Phase::kRejected) code = ErrorCode::kRejected;
  if (snapshot.phase == Phase::kDraining) code = ErrorCode::kDraining;
  if (snapshot.phase == Phase::kFailed) code = ErrorCode::kEngineFault;
  return ApiError{code,
                  {"", std::string(Info(code).meaning), "",
                   snapshot.blocker.empty() ? "" : "see /status: " + snapshot.blocker}};
}

void OpenAiRoutes::AnswerModels(const HttpRequest& request, HttpResponder& responder) {
  Exchange exchange(ApiRoute::kModels, request, responder, inflight_, metrics_);
  if (auto error = Unavailable()) return exchange.Fail(*error);
  const Serving& served = *serving();
  Json model = {{"id", served.model_name},
                {"object", "model"},
                {"created", attached_at_},
                {"owned_by", "ashlar"},
                {"root", served.model_name},
                {"parent", nullptr},
                {"max_model_len", served.plan.context_length}};
  constexpr std::string_view kPrefix = "/v1/models/";
  if (!request.path.starts_with(kPrefix)) {
    return exchange.Send({{"object", "list"}, {"data", Json::array({std::move(model)})}});
  }
  std::string asked = DecodePercent(std::string_view(request.path).substr(kPrefix.size()));
  if (asked != served.model_name) return exchange.Fail(UnknownModel(asked, served.model_name));
  exchange.Send(model);
}

void OpenAiRoutes::AnswerGeneration(ApiRoute route, const HttpRequest& request,
                                    HttpResponder& responder) {
  Exchange exchange(route, request, responder, inflight_, metrics_);
  if (auto error = Unavailable()) return exchange.Fail(*error);
  const Serving& served = *serving();
  ParsedRequest parsed = route == ApiRoute::kChat ? ParseChat(request.body, LimitsOf(served))
                                                  : ParseCompletion(request.body, LimitsOf(served));
  if (const auto* error = std::get_if<ApiError>(&parsed)) return exchange.Fail(*error);
  const ApiRequest& typed = std::get<ApiRequest>(parsed);
  if (typed.model != served.model_name) {
    return exchange.Fail(UnknownModel(typed.model, served.model_name));
  }
  exchange.Finish(Generation(served, typed, ending_, exchange.headers(), responder).Run());
}

}  // namespace ashlar
