#include "serve/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <random>
#include <thread>

#include "serve/openai_request.h"
#include "serve/status.h"

namespace ashlar {
namespace {

using Clock = std::chrono::steady_clock;

// The client's id when it is harmless to repeat, else a new one.
std::string RequestId(const HttpRequest& request) {
  std::string_view given = request.Header("x-request-id");
  bool harmless =
      !given.empty() && given.size() <= 128 &&
      std::all_of(given.begin(), given.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (harmless) return std::string(given);
  static thread_local std::mt19937_64 random{std::random_device{}()};
  return fmt::format("req-{:016x}", random());
}

void SendError(HttpResponder& responder, const ApiError& error, HttpHeaders headers) {
  for (auto& header : ErrorHeaders(error.code)) headers.push_back(std::move(header));
  responder.Send(Info(error.code).status, headers, DumpJson(ErrorJson(error)));
}

void SendText(HttpResponder& responder, int status, std::string_view text) {
  responder.Send(status, {{"Content-Type", "text/plain; charset=utf-8"}}, text);
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

// Counts a request while it lives.
class Inflight {
 public:
  explicit Inflight(std::atomic<int64_t>& count) : count_(count) { ++count_; }
  ~Inflight() { --count_; }
  Inflight(const Inflight&) = delete;

 private:
  std::atomic<int64_t>& count_;
};

}  // namespace

ApiServer::ApiServer(Options options, Readiness& readiness)
    : options_(std::move(options)), readiness_(readiness) {}

Result<std::unique_ptr<ApiServer>> ApiServer::Start(Options options, Readiness& readiness) {
  std::unique_ptr<ApiServer> server(new ApiServer(std::move(options), readiness));
  HttpServer::Options http;
  http.host = server->options_.host;
  http.port = server->options_.port;
  http.limits = server->options_.limits;
  http.error_body = [](int status, std::string_view reason) {
    ErrorCode code = CodeOfHttpStatus(status);
    return DumpJson(ErrorJson({code, {"", std::string(reason), "", ""}}));
  };
  http.authorize = [keys = &server->options_.keys](const HttpRequest& request) {
    bool admitted = !ApiKeys::Guards(request.path) || keys->Admits(request.Header("authorization"));
    return admitted ? 0 : 401;
  };
  auto started = HttpServer::Start(std::move(http), server->Routes());
  if (!started) return started.problems();
  server->http_ = std::move(*started);
  server->counters_ = &server->http_->counters();
  return server;
}

ApiServer::~ApiServer() { ending_ = true; }

std::vector<HttpRoute> ApiServer::Routes() {
  HttpHandler ready = [this](const HttpRequest&, HttpResponder& responder) {
    AnswerReady(responder);
  };
  HttpHandler models = [this](const HttpRequest& request, HttpResponder& responder) {
    AnswerModels(request, responder);
  };
  return {
      {"GET", "/livez",
       [](const HttpRequest&, HttpResponder& responder) { SendText(responder, 200, "ok\n"); },
       true},
      {"GET", "/readyz", ready, true},
      {"GET", "/health", ready, true},
      {"GET", "/status",
       [this](const HttpRequest&, HttpResponder& responder) {
         NoteFault();
         responder.Send(200, {{"Content-Type", "application/json"}}, StatusJson());
       },
       true},
      {"GET", "/metrics",
       [this](const HttpRequest&, HttpResponder& responder) {
         NoteFault();
         const Serving* serving = serving_.load();
         Metrics::Sources sources;
         sources.readiness = readiness_.snapshot();
         if (serving != nullptr) sources.engine = serving->generator.stats();
         sources.http = counters_.load();
         sources.inflight = inflight_;
         responder.Send(200, {{"Content-Type", std::string(Metrics::kContentType)}},
                        metrics_.Render(sources));
       },
       true},
      {"GET", "/v1/models", models},
      {"GET", "/v1/models/*", models},
      {"POST", "/v1/completions",
       [this](const HttpRequest& request, HttpResponder& responder) {
         AnswerGeneration(ApiRoute::kCompletions, request, responder);
       }},
      {"POST", "/v1/chat/completions",
       [this](const HttpRequest& request, HttpResponder& responder) {
         AnswerGeneration(ApiRoute::kChat, request, responder);
       }},
  };
}

// A device that failed after Ready makes the server unready for good.
void ApiServer::NoteFault() {
  const Serving* serving = serving_.load();
  if (serving == nullptr) return;
  std::string fault = serving->generator.stats().fault;
  if (fault.empty()) return;
  readiness_.FailWith(ReadyCheck::kEngine, {{"engine", fault, "", "restart this replica"}});
  if (readiness_.snapshot().phase == Phase::kReady) readiness_.SetPhase(Phase::kFailed);
}

void ApiServer::AnswerReady(HttpResponder& responder) {
  NoteFault();
  Readiness::Snapshot snapshot = readiness_.snapshot();
  bool ready = snapshot.ready && serving_.load() != nullptr;
  if (ready) {
    SendText(responder, 200, "ok\n");
    return;
  }
  std::string blocker = snapshot.blocker.empty() ? "engine" : snapshot.blocker;
  std::string text = blocker + "\n";
  for (const CheckInfo& info : kChecks) {
    if (info.name != blocker) continue;
    for (const Problem& problem : snapshot.problems[static_cast<size_t>(info.check)]) {
      text += problem.Text() + "\n";
    }
  }
  SendText(responder, 503, text);
}

std::optional<ApiError> ApiServer::Unavailable() {
  Readiness::Snapshot snapshot = readiness_.snapshot();
  // A draining server goes on serving until its listener closes.
  bool serves = snapshot.phase == Phase::kReady || snapshot.phase == Phase::kDraining;
  if (serves && serving_.load() != nullptr && !ending_) return std::nullopt;
  ErrorCode code = ErrorCode::kLoading;
  if (snapshot.phase == Phase::kRejected) code = ErrorCode::kRejected;
  if (snapshot.phase == Phase::kDraining) code = ErrorCode::kDraining;
  if (snapshot.phase == Phase::kFailed) code = ErrorCode::kEngineFault;
  return ApiError{code,
                  {"", std::string(Info(code).meaning), "",
                   snapshot.blocker.empty() ? "" : "see /status: " + snapshot.blocker}};
}

void ApiServer::AnswerModels(const HttpRequest& request, HttpResponder& responder) {
  HttpHeaders headers = {{"x-request-id", RequestId(request)}};
  auto count = [this](int status) { metrics_.CountRequest(ApiRoute::kModels, status); };
  if (auto error = Unavailable()) {
    count(Info(error->code).status);
    return SendError(responder, *error, std::move(headers));
  }
  const Serving& serving = *serving_.load();
  Json model = {{"id", serving.model_name},
                {"object", "model"},
                {"created", attached_at_},
                {"owned_by", "ashlar"},
                {"root", serving.model_name},
                {"parent", nullptr},
                {"max_model_len", serving.plan.context_length}};
  Json body = {{"object", "list"}, {"data", Json::array({model})}};
  constexpr std::string_view kPrefix = "/v1/models/";
  if (request.path.starts_with(kPrefix)) {
    std::string asked = DecodePercent(std::string_view(request.path).substr(kPrefix.size()));
    if (asked != serving.model_name) {
      count(404);
      return SendError(responder, UnknownModel(asked, serving.model_name), std::move(headers));
    }
    body = std::move(model);
  }
  count(200);
  headers.emplace_back("Content-Type", "application/json");
  responder.Send(200, headers, DumpJson(body));
}

void ApiServer::AnswerGeneration(ApiRoute route, const HttpRequest& request,
                                 HttpResponder& responder) {
  Inflight inflight(inflight_);
  HttpHeaders headers = {{"x-request-id", RequestId(request)}};
  auto fail = [&](const ApiError& error) {
    metrics_.CountRequest(route, Info(error.code).status);
    SendError(responder, error, headers);
  };
  if (auto error = Unavailable()) return fail(*error);
  const Serving& serving = *serving_.load();
  ParsedRequest parsed = route == ApiRoute::kChat
                             ? ParseChat(request.body, LimitsOf(serving))
                             : ParseCompletion(request.body, LimitsOf(serving));
  if (const auto* error = std::get_if<ApiError>(&parsed)) return fail(*error);
  const ApiRequest& typed = std::get<ApiRequest>(parsed);
  if (typed.model != serving.model_name) return fail(UnknownModel(typed.model, serving.model_name));

  auto start = Clock::now();
  Generation generation(serving, typed, ending_);
  GenerationReport report = generation.Run(responder, headers);
  metrics_.CountRequest(route, report.status);
  if (report.outcome == Outcome::kAnswered) {
    metrics_.Observe(route, report, std::chrono::duration<double>(Clock::now() - start).count());
  }
}

void ApiServer::SetModel(const std::string& name, const std::string& digest) {
  metrics_.SetModel(name, digest);
  std::lock_guard lock(mutex_);
  model_name_ = name;
  digest_ = digest;
}

void ApiServer::SetPlan(const Plan& plan) {
  metrics_.SetPlan(plan);
  Json json = ToJson(plan);
  std::lock_guard lock(mutex_);
  plan_ = std::move(json);
}

void ApiServer::SetSelfTest(std::vector<SelfTestResult> results) {
  metrics_.SetSelfTest(results);
  std::lock_guard lock(mutex_);
  self_test_ = std::move(results);
}

void ApiServer::SetStartupPhase(const std::string& phase, double seconds) {
  metrics_.SetStartupPhase(phase, seconds);
}

void ApiServer::Attach(Serving serving) {
  attached_at_ = std::time(nullptr);
  Check(serving_owner_ == nullptr, "one model to one server");
  serving_owner_ = std::make_unique<const Serving>(std::move(serving));
  serving_ = serving_owner_.get();
}

std::string ApiServer::StatusJson() const {
  StatusSources sources;
  sources.readiness = readiness_.snapshot();
  EngineStats stats;
  if (const Serving* serving = serving_.load()) {
    stats = serving->generator.stats();
    sources.engine = &stats;
  }
  {
    std::lock_guard lock(mutex_);
    sources.model_name = model_name_;
    sources.digest = digest_;
    sources.plan = plan_;
    sources.self_test = self_test_;
  }
  return DumpJson(StatusDocument(sources));
}

void ApiServer::EndDrainNow() {
  std::lock_guard lock(mutex_);
  hurry_ = true;
  changed_.notify_all();
}

// Looks every few milliseconds: a drain happens once in a process's life.
bool ApiServer::WaitForIdle(double seconds) {
  auto until = Clock::now() + std::chrono::duration<double>(seconds);
  std::unique_lock lock(mutex_);
  while (inflight_ > 0 && !hurry_ && Clock::now() < until) {
    changed_.wait_for(lock, std::chrono::milliseconds(5));
  }
  return inflight_ == 0;
}

bool ApiServer::Drain(double lame_duck_seconds, double drain_seconds) {
  readiness_.SetPhase(Phase::kDraining);
  http_->AnnounceClose();
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::duration<double>(lame_duck_seconds),
                      [this] { return hurry_; });
  }
  http_->StopAccepting();
  bool clean = WaitForIdle(drain_seconds);
  ending_ = true;
  if (!clean) {
    // Their threads look at `ending_` many times a second; a stuck reader gets no more than this.
    auto until = Clock::now() + std::chrono::seconds(5);
    while (inflight_ > 0 && Clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  if (const Serving* serving = serving_.load()) serving->generator.StopAccepting();
  return clean;
}

}  // namespace ashlar
