#include "operator-hooks/hook_server.h"

#include <chrono>

#include "operator-hooks/admission.h"
#include "operator-hooks/json_reader.h"
#include "operator-hooks/json_writer.h"
#include "operator-hooks/sync.h"

namespace ashlar::hooks {
namespace {

constexpr int64_t kFirstPollSeconds = 2;

void WriteProblem(JsonWriter& out, const Problem& problem) {
  out.Object([&] {
    out.Add("place", problem.place);
    out.Add("found", problem.found);
    out.Add("allowed", problem.allowed);
    out.Add("next", problem.next);
  });
}

HookAnswer Refuse(int status, const Problems& problems) {
  JsonWriter out;
  out.Object([&] {
    out.Add("error", Text(problems));
    out.Array("problems", [&] {
      for (const Problem& problem : problems) WriteProblem(out, problem);
    });
  });
  return {status, out.Take(), 0};
}

// Parsers keep their memory from request to request.
JsonParser& ThreadParser() {
  thread_local JsonParser parser;
  return parser;
}

void Send(const HookAnswer& answer, HttpResponder& responder) {
  HttpHeaders headers = {{"Content-Type", "application/json"}};
  if (answer.retry_after_seconds > 0)
    headers.emplace_back("Retry-After", std::to_string(answer.retry_after_seconds));
  responder.Send(answer.status, headers, answer.body);
}

// Answers with a function of the service, and counts.
HttpHandler Counted(HookService& service, HookMetrics& metrics, Hook hook,
                    HookAnswer (HookService::*answer_to)(std::string_view)) {
  return
      [&service, &metrics, hook, answer_to](const HttpRequest& request, HttpResponder& responder) {
        const auto start = std::chrono::steady_clock::now();
        HookAnswer answer = (service.*answer_to)(request.body);
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        metrics.CountRequest(hook, answer.status, took.count());
        Send(answer, responder);
      };
}

}  // namespace

HookAnswer HookService::Sync(std::string_view body) {
  Result<JsonElement> request = ThreadParser().Parse(body, "body");
  if (!request) return Refuse(400, request.problems());
  Problems problems;
  Observed observed = ReadObserved(*request, problems);
  // An object that could not be created today can still be deleted.
  const bool leaving = observed.finalizing && !observed.model.name.empty();
  if (!problems.empty() && !leaving) return Refuse(400, problems);
  const SnapshotStore::ModelKey key(observed.model.ns, observed.model.name);
  const int64_t now = clock_();
  Snapshot snapshot = snapshots_.Get(key, now);
  if (!snapshot.polled && observed.children.workload.replicas > 0 && !observed.finalizing) {
    HookAnswer later = Refuse(429, {{observed.model.name, "its pods were not asked yet",
                                     "a first look at each pod's /status", "ask again"}});
    later.retry_after_seconds = kFirstPollSeconds;
    return later;
  }
  Reconciled result = Reconcile(observed, snapshot, now, settings_, &memo_);
  snapshots_.Judge(key, result.truths);
  if (result.finalized) snapshots_.Forget(key);
  return {200, result.Body(observed.finalizing), 0};
}

HookAnswer HookService::Customize(std::string_view body) {
  Result<JsonElement> request = ThreadParser().Parse(body, "body");
  if (!request) return Refuse(400, request.problems());
  Problems problems;
  ObjectReader pod =
      ObjectReader(*request, "", problems).Object("parent").Object("spec").Object("pod");
  std::map<std::string, std::string> selector = pod.TextMap("nodeSelector");
  if (!problems.empty()) return Refuse(400, problems);
  JsonWriter out;
  out.Object([&] {
    out.Array("relatedResources", [&] {
      out.Object([&] {
        out.Add("apiVersion", "v1");
        out.Add("resource", "nodes");
        out.Object("labelSelector", [&] {
          out.Object("matchLabels", [&] {
            for (const auto& [label, value] : selector) out.Add(label, value);
          });
        });
      });
    });
  });
  return {200, out.Take(), 0};
}

HookAnswer HookService::Validate(std::string_view body) {
  Result<JsonElement> review = ThreadParser().Parse(body, "body");
  if (!review) return Refuse(400, review.problems());
  Problems problems;
  std::string answer = ReviewAdmission(*review, settings_, problems);
  if (!problems.empty()) return Refuse(400, problems);
  return {200, std::move(answer), 0};
}

std::vector<HttpRoute> HookRoutes(HookService& service, HookMetrics& metrics) {
  auto health = [](const HttpRequest&, HttpResponder& responder) {
    responder.Send(200, {{"Content-Type", "text/plain"}}, "ok\n");
  };
  auto page = [&service](const HttpRequest&, HttpResponder& responder) {
    responder.Send(200, {{"Content-Type", "text/plain; version=0.0.4"}}, service.Metrics());
  };
  return {
      {"POST", "/sync", Counted(service, metrics, Hook::kSync, &HookService::Sync)},
      {"POST", "/finalize", Counted(service, metrics, Hook::kFinalize, &HookService::Sync)},
      {"POST", "/customize", Counted(service, metrics, Hook::kCustomize, &HookService::Customize)},
      {"GET", "/healthz", health, true},
      {"GET", "/metrics", page, true}};
}

std::vector<HttpRoute> AdmissionRoutes(HookService& service, HookMetrics& metrics) {
  return {
      {"POST", "/validate", Counted(service, metrics, Hook::kValidate, &HookService::Validate)}};
}

HttpLimits HookLimits() {
  HttpLimits limits;
  limits.body_bytes = 64 << 20;
  limits.connections = 64;
  return limits;
}

std::string HookError(int status, std::string_view reason) {
  return Refuse(status, {{"request", std::string(reason),
                          "POST /sync, /finalize and /customize, or /validate with TLS",
                          "send what Metacontroller or the API server sends"}})
      .body;
}

}  // namespace ashlar::hooks
