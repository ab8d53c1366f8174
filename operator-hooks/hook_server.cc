#include "operator-hooks/hook_server.h"

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

}  // namespace

HookAnswer HookService::Sync(std::string_view body) {
  Result<JsonElement> request = ThreadParser().Parse(body, "body");
  if (!request) return Refuse(400, request.problems());
  Problems problems;
  Observed observed = ReadObserved(*request, problems);
  // An object that could not be created today can still be deleted.
  const bool leaving = observed.finalizing && !observed.model.name.empty();
  if (!problems.empty() && !leaving) return Refuse(400, problems);
  Snapshot snapshot = snapshots_.Get(observed.model.ns, observed.model.name);
  if (!snapshot.polled && observed.children.workload.replicas > 0 && !observed.finalizing) {
    HookAnswer later = Refuse(429, {{observed.model.name, "its pods were not asked yet",
                                     "a first look at each pod's /status", "ask again"}});
    later.retry_after_seconds = kFirstPollSeconds;
    return later;
  }
  Reconciled result = Reconcile(observed, snapshot, clock_(), settings_, &memo_);
  if (result.finalized) snapshots_.Forget(observed.model.ns, observed.model.name);
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

std::vector<HttpRoute> HookRoutes(HookService& service) {
  auto sync = [&service](const HttpRequest& request, HttpResponder& responder) {
    Send(service.Sync(request.body), responder);
  };
  auto customize = [&service](const HttpRequest& request, HttpResponder& responder) {
    Send(service.Customize(request.body), responder);
  };
  auto health = [](const HttpRequest&, HttpResponder& responder) {
    responder.Send(200, {{"Content-Type", "text/plain"}}, "ok\n");
  };
  return {{"POST", "/sync", sync},
          {"POST", "/finalize", sync},
          {"POST", "/customize", customize},
          {"GET", "/healthz", health, true}};
}

HttpLimits HookLimits() {
  HttpLimits limits;
  limits.body_bytes = 64 << 20;
  limits.connections = 64;
  return limits;
}

std::string HookError(int status, std::string_view reason) {
  return Refuse(status, {{"request", std::string(reason), "POST /sync, /finalize or /customize",
                          "send what Metacontroller sends"}})
      .body;
}

}  // namespace ashlar::hooks
