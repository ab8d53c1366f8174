#include "serve/server.h"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "support/http_api_fixture.h"

namespace ashlar {
namespace {

using test::Eventually;
using test::HttpAnswer;
using test::RawClient;
using namespace std::chrono_literals;

class ServerTest : public test::ApiFixture {};

TEST_F(ServerTest, ARejectedModelStaysAliveAndExplainsItself) {
  Open();
  server_->SetModel("toy", "abc");
  readiness_.Pass(ReadyCheck::kSpec);
  readiness_.Pass(ReadyCheck::kSource);
  readiness_.Pass(ReadyCheck::kPlatform);
  readiness_.FailWith(ReadyCheck::kBackends,
                      {{"model.yaml:3:5 backends.default.use", "NOPE is no backend", "CPU_PAGED",
                        "did you mean CPU_PAGED?"}});
  readiness_.SetPhase(Phase::kRejected);
  EXPECT_EQ(Get("/livez").status, 200);
  HttpAnswer ready = Get("/readyz");
  EXPECT_EQ(ready.status, 503);
  EXPECT_EQ(ready.body,
            "backends\nmodel.yaml:3:5 backends.default.use: NOPE is no backend: CPU_PAGED; did you "
            "mean CPU_PAGED?\n");
  Json status = Json::parse(Get("/status").body);
  EXPECT_EQ(status["phase"], "rejected");
  EXPECT_EQ(status["blocker"], "backends");
  EXPECT_EQ(status["checks"][3]["reason"], "NoValidBackend");
  EXPECT_EQ(status["checks"][3]["problems"][0]["found"], "NOPE is no backend");
  EXPECT_TRUE(status["plan"].is_null());
  HttpAnswer refused = Chat({});
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers["x-should-retry"], "false");
  EXPECT_EQ(Json::parse(refused.body)["error"]["code"], "model_rejected");
  EXPECT_EQ(Get("/v1/models").status, 503);
}

TEST_F(ServerTest, StatusShowsWhatWasDecidedAndHowItRuns) {
  OpenReady();
  server_->SetSelfTest({{"full_attention", 0, "CPU_PAGED", 0.001, 0.01}});
  Json status = Json::parse(Get("/status").body);
  EXPECT_EQ(status["phase"], "ready");
  EXPECT_EQ(status["ready"], true);
  EXPECT_EQ(status["model"], "toy");
  EXPECT_EQ(status["digest"], std::string(64, 'd'));
  EXPECT_EQ(status["plan"]["kvGroups"].size(), 2u);
  EXPECT_EQ(status["selfTest"][0]["passed"], true);
  EXPECT_EQ(status["engine"]["running"], 0);
  EXPECT_EQ(status["engine"]["groups"].size(), 2u);
}

TEST_F(ServerTest, KeysGuardTheApiAndUnknownPathsOnly) {
  std::string path = testing::TempDir() + "server_test_keys";
  std::ofstream(path) << "k\n";
  ApiServer::Options options;
  options.keys = std::move(ApiKeys::Load(path)).value();
  OpenReady(std::move(options));
  for (const char* open : {"/livez", "/readyz", "/health", "/metrics", "/status"}) {
    EXPECT_EQ(Get(open).status, 200) << open;
  }
  for (const char* guarded : {"/v1/models", "/unknown", "/v1/nothing"}) {
    HttpAnswer answer = Get(guarded);
    EXPECT_EQ(answer.status, 401) << guarded;
    Json error = Json::parse(answer.body)["error"];
    EXPECT_EQ(error["type"], "authentication_error");
    EXPECT_EQ(error["code"], "invalid_api_key");
  }
  EXPECT_EQ(Client().Get("/v1/models", "Authorization: Bearer k\r\n").status, 200);
  EXPECT_EQ(Client().Get("/unknown", "Authorization: Bearer k\r\n").status, 404);
}

TEST_F(ServerTest, ListsAndFindsTheModel) {
  OpenReady();
  Json list = Json::parse(Get("/v1/models").body);
  EXPECT_EQ(list["object"], "list");
  EXPECT_EQ(list["data"][0]["id"], "toy");
  EXPECT_EQ(list["data"][0]["max_model_len"], 128);
  EXPECT_EQ(Json::parse(Get("/v1/models/toy").body)["id"], "toy");
  EXPECT_EQ(Json::parse(Get("/v1/models/%74oy").body)["id"], "toy");
  HttpAnswer missing = Get("/v1/models/other");
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(Json::parse(missing.body)["error"]["code"], "model_not_found");
  EXPECT_EQ(Client().Post("/v1/models", "{}").status, 405);
}

TEST_F(ServerTest, SeveralChoicesShareOnePromptCount) {
  OpenReady();
  Json body = Json::parse(Complete({{"prompt", "abcd"}, {"n", 3}}).body);
  EXPECT_EQ(body["choices"].size(), 3u);
  EXPECT_EQ(body["usage"]["prompt_tokens"], 4);
  EXPECT_EQ(body["usage"]["completion_tokens"], 6);
  EXPECT_EQ(body["usage"]["total_tokens"], 10);
  HttpAnswer stream = Chat({{"n", 3}, {"stream", true}});
  std::map<int, std::string> texts;
  std::map<int, int> finished;
  for (const Json& event : Events(stream.body)) {
    if (!event.is_object()) continue;
    const Json& choice = event["choices"][0];
    if (choice["delta"].contains("content")) {
      texts[choice["index"]] += choice["delta"]["content"].get<std::string>();
    }
    finished[choice["index"]] += choice["finish_reason"].is_null() ? 0 : 1;
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(texts[i], "all done.");
    EXPECT_EQ(finished[i], 1);
  }
}

TEST_F(ServerTest, ChoicesOfOneSeedHaveSeedsOfTheirOwn) {
  OpenReady();
  EXPECT_EQ(Complete({{"seed", 5}, {"n", 3}}).status, 200);
  EXPECT_EQ(toy_.last_request().sampling.seed, 7u);
  EXPECT_EQ(Complete({}).status, 200);
  EXPECT_FALSE(toy_.last_request().sampling.seed);
}

TEST_F(ServerTest, AFullQueueIs429WithAdvice) {
  OpenReady();
  test::ToyScript script = Script({kTo});
  script.queue = 2;
  script.step = std::chrono::milliseconds(400);  // none ends while the three are handed over
  toy_.SetScript(script);
  HttpAnswer answer = Complete({{"n", 3}});
  EXPECT_EQ(answer.status, 429);
  EXPECT_EQ(answer.headers["retry-after-ms"], "1000");
  Json error = Json::parse(answer.body)["error"];
  EXPECT_EQ(error["type"], "rate_limit_error");
  EXPECT_EQ(error["code"], "queue_full");
  // What had been taken of it was given back.
  EXPECT_TRUE(Eventually([&] { return toy_.stats().running == 0; }));
}

TEST_F(ServerTest, MoreTokensThanOneRequestMayAskForAreRefused) {
  plan_.context_length = 131'072;
  OpenReady();
  HttpAnswer answer = Complete({{"n", 16}, {"max_tokens", 100'000}});
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(Json::parse(answer.body)["error"]["param"], "n");
}

TEST_F(ServerTest, ADeviceFaultMakesItUnreadyForGood) {
  OpenReady();
  EXPECT_EQ(Get("/readyz").status, 200);
  test::ToyScript script = Script({kTo});
  script.fault = "the device is gone";
  toy_.SetScript(script);
  HttpAnswer ready = Get("/readyz");
  EXPECT_EQ(ready.status, 503);
  EXPECT_EQ(ready.body, "engine\nengine: the device is gone; restart this replica\n");
  HttpAnswer answer = Complete({});
  EXPECT_EQ(answer.status, 500);
  EXPECT_EQ(answer.headers["x-should-retry"], "false");
  EXPECT_EQ(Json::parse(Get("/status").body)["phase"], "failed");
  EXPECT_EQ(Get("/livez").status, 200);
}

// GP-01: no probe is green for good after a fault.
TEST_F(ServerTest, LivenessFailsOnceAFaultHasLasted) {
  ApiServer::Options options;
  options.fault_grace_seconds = 0;
  OpenReady(std::move(options));
  EXPECT_EQ(Get("/livez").status, 200);
  test::ToyScript script = Script({kTo});
  script.fault = "a step has not ended for 60 s";
  toy_.SetScript(script);
  HttpAnswer live = Get("/livez");
  EXPECT_EQ(live.status, 503);
  EXPECT_EQ(live.body, "the device failed\n");
}

TEST_F(ServerTest, ADrainThatRunsOutEndsStreamsWithOneErrorEvent) {
  OpenReady();
  test::ToyScript script = Script({kTo});
  script.step = 20ms;
  toy_.SetScript(script);
  RawClient stream = Client();
  std::string body =
      R"({"model":"toy","prompt":"hi","stream":true,"ignore_eos":true,"max_tokens":120})";
  stream.Say("POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: " +
             std::to_string(body.size()) + "\r\n\r\n" + body);
  ASSERT_TRUE(Eventually([&] { return toy_.stats().running == 1; }));
  EXPECT_FALSE(server_->Drain(0.05, 0.2));
  HttpAnswer answer = stream.Answer();
  EXPECT_TRUE(answer.whole);
  std::vector<Json> events = Events(answer.body);
  EXPECT_EQ(events.back()["error"]["code"], "draining");
  EXPECT_EQ(events.back()["error"]["type"], "server_error");
  EXPECT_EQ(toy_.stats().running, 0);
}

TEST_F(ServerTest, AModelWithoutATemplateRefusesChatOnly) {
  template_.reset();
  OpenReady();
  HttpAnswer answer = Chat({});
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(Json::parse(answer.body)["error"]["code"], "chat_template_error");
  EXPECT_EQ(Complete({}).status, 200);
}

TEST_F(ServerTest, ATemplateThatRaisesIsTheClientsMistake) {
  template_ =
      std::move(ChatTemplate::Compile("{{ raise_exception('only one turn') }}", "", "")).value();
  OpenReady();
  HttpAnswer answer = Chat({});
  EXPECT_EQ(answer.status, 400);
  Json error = Json::parse(answer.body)["error"];
  EXPECT_EQ(error["code"], "chat_template_error");
  EXPECT_NE(error["message"].get<std::string>().find("only one turn"), std::string::npos);
}

TEST_F(ServerTest, EveryAnswerCarriesARequestId) {
  OpenReady();
  EXPECT_TRUE(Complete({}).headers["x-request-id"].starts_with("req-"));
  EXPECT_EQ(Client().Get("/v1/models", "X-Request-Id: mine\r\n").headers["x-request-id"], "mine");
  EXPECT_NE(Client().Get("/v1/models", "X-Request-Id: two words\r\n").headers["x-request-id"],
            "two words");
}

TEST_F(ServerTest, StreamsSaySoInTheirHeaders) {
  OpenReady();
  HttpAnswer answer = Complete({{"stream", true}});
  EXPECT_EQ(answer.headers["content-type"], "text/event-stream; charset=utf-8");
  EXPECT_EQ(answer.headers["cache-control"], "no-cache");
}

TEST_F(ServerTest, EchoComesFirstInAStream) {
  OpenReady();
  std::vector<Json> events = Events(Complete({{"stream", true}, {"echo", true}}).body);
  EXPECT_EQ(Joined(events), "hiall done.");
  EXPECT_EQ(Texts(events)[0], "hi");
}

TEST_F(ServerTest, AStopStringMayBeKept) {
  OpenReady();
  Json body = Json::parse(Complete({{"stop", "done"}, {"include_stop_str_in_output", true}}).body);
  EXPECT_EQ(body["choices"][0]["text"], "all done");
}

}  // namespace
}  // namespace ashlar
