// Public bug reports re-created, one test a row; the scripted engine stands for the model.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <set>
#include <thread>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
extern "C" size_t __sanitizer_get_current_allocated_bytes();
#else
#include <malloc.h>
#endif

#include "support/http_api_fixture.h"

namespace ashlar {
namespace {

using test::Eventually;
using test::HttpAnswer;
using test::RawClient;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

class BugCases : public test::ApiFixture {
 protected:
  // The same request with and without streaming.
  std::pair<std::vector<Json>, Json> Both(const std::string& path, Json fields) {
    fields["model"] = "toy";
    Json whole = Json::parse(Post(path, fields).body);
    fields["stream"] = true;
    HttpAnswer answer = Post(path, fields);
    EXPECT_TRUE(answer.whole);
    return {Events(answer.body), whole};
  }
  std::pair<std::vector<Json>, Json> BothCompletions(Json fields) {
    fields["prompt"] = "hi";
    return Both("/v1/completions", std::move(fields));
  }
  std::pair<std::vector<Json>, Json> BothChats(Json fields) {
    fields["messages"] = Json::array({{{"role", "user"}, {"content", "hi"}}});
    return Both("/v1/chat/completions", std::move(fields));
  }
  static std::string BytesOf(const Json& content) {
    std::string bytes;
    for (const Json& entry : content) {
      for (int byte : entry["bytes"]) bytes += static_cast<char>(byte);
    }
    return bytes;
  }
  static int64_t AllocatedBytes() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return static_cast<int64_t>(__sanitizer_get_current_allocated_bytes());
#else
    return static_cast<int64_t>(mallinfo2().uordblks);
#endif
  }
};

TEST_F(BugCases, ST01_NoPartOfAStopStringReachesTheClient) {
  OpenReady();
  toy_.SetScript(Script({kTo, kMor, kRow, kOk}));
  auto [events, whole] = BothCompletions({{"stop", {"morrow"}}});
  EXPECT_EQ(Joined(events), "to");
  EXPECT_EQ(FinishReasonOf(events), "stop");
  EXPECT_EQ(whole["choices"][0]["text"], "to");
  EXPECT_EQ(whole["choices"][0]["finish_reason"], "stop");
  auto [chat_events, chat_whole] = BothChats({{"stop", "morrow"}});
  EXPECT_EQ(Joined(chat_events), "to");
  EXPECT_EQ(chat_whole["choices"][0]["message"]["content"], "to");
}

TEST_F(BugCases, ST03_TheEndIsNotLostInTheHoldBack) {
  OpenReady();
  std::vector<int32_t> ids = {kAll, kDone};
  for (int32_t id : test::ByteIds("@@")) ids.push_back(id);
  toy_.SetScript(Script(ids));
  for (Json fields : {Json{{"stop", {"@@@@"}}, {"max_tokens", 100}},
                      Json{{"stop", {"@@@@"}}, {"max_tokens", 4}}}) {
    auto [events, whole] = BothCompletions(fields);
    EXPECT_EQ(Joined(events), "all done.@@");
    EXPECT_EQ(whole["choices"][0]["text"], "all done.@@");
    EXPECT_EQ(FinishReasonOf(events), fields["max_tokens"] == 4 ? "length" : "stop");
  }
}

TEST_F(BugCases, ST04_NoEmptyChunksApartFromTheRole) {
  OpenReady();
  toy_.SetScript(Script({kTo, kMor, kRow, kOk, kTo, kMor, kRow, kOk, kAll, kDone}));
  auto [events, whole] = BothChats({{"stop", {"####"}}});
  std::vector<std::string> texts = Texts(events);
  ASSERT_GE(texts.size(), 2u);
  EXPECT_EQ(texts[0], "");  // the role chunk
  for (size_t i = 1; i < texts.size(); ++i) EXPECT_NE(texts[i], "");
  EXPECT_EQ(events[0]["choices"][0]["delta"]["role"], "assistant");
  auto [completion, unused] = BothCompletions({{"stop", {"####"}}});
  std::vector<std::string> pieces = Texts(completion);
  for (size_t i = 0; i + 1 < pieces.size(); ++i) EXPECT_NE(pieces[i], "");
  EXPECT_EQ(pieces.back(), "");  // carries finish_reason
}

TEST_F(BugCases, ST09_ACharacterOfFourTokensComesInOneChunk) {
  OpenReady();
  toy_.SetScript(Script(test::ByteIds("\xf0\x9f\xa6\x8a")));
  auto [events, whole] = BothChats({});
  EXPECT_EQ(Texts(events), (std::vector<std::string>{"", "\xf0\x9f\xa6\x8a"}));
  EXPECT_EQ(whole["choices"][0]["message"]["content"], "\xf0\x9f\xa6\x8a");
}

TEST_F(BugCases, ST11_ACharacterOfTwoTokensIsWholeOrOneReplacement) {
  OpenReady();
  std::vector<int32_t> ids = {kTo};
  for (int32_t id : test::ByteIds("\xe4\xb8\xad")) ids.push_back(id);
  toy_.SetScript(Script(ids));
  auto [events, whole] = BothChats({});
  EXPECT_EQ(Joined(events), "to\xe4\xb8\xad");
  // Cut inside: one replacement character, in stream and plain reply alike.
  auto [cut, plain] = BothChats({{"max_tokens", 3}});
  EXPECT_EQ(Joined(cut), "to\xef\xbf\xbd");
  EXPECT_EQ(FinishReasonOf(cut), "length");
  EXPECT_EQ(plain["choices"][0]["message"]["content"], "to\xef\xbf\xbd");
}

TEST_F(BugCases, ST13_APlainReplyCutInsideACharacterIsValidJson) {
  OpenReady();
  toy_.SetScript(Script(test::ByteIds("\xe4\xb8\xad")));
  HttpAnswer answer = Complete({{"max_tokens", 2}});
  EXPECT_EQ(answer.status, 200);
  Json body = Json::parse(answer.body);
  EXPECT_EQ(body["choices"][0]["text"], "\xef\xbf\xbd");
  EXPECT_EQ(body["choices"][0]["finish_reason"], "length");
}

TEST_F(BugCases, ST14_LogprobBytesAreTheRawBytesAndJoinToTheAnswer) {
  OpenReady();
  toy_.SetScript(Script(test::ByteIds("a\xf0\x9f\xa6\x8a")));
  auto [events, whole] = BothChats({{"logprobs", true}, {"top_logprobs", 3}});
  EXPECT_EQ(BytesOf(whole["choices"][0]["logprobs"]["content"]), "a\xf0\x9f\xa6\x8a");
  std::string streamed;
  for (const Json& event : events) {
    if (!event.is_object()) continue;
    const Json& logprobs = event["choices"][0]["logprobs"];
    if (!logprobs.is_null()) streamed += BytesOf(logprobs["content"]);
  }
  EXPECT_EQ(streamed, "a\xf0\x9f\xa6\x8a");
}

TEST_F(BugCases, ST16_LogprobTokensAreReadable) {
  OpenReady();
  std::vector<int32_t> ids = {kOk};
  for (int32_t id : test::ByteIds("\xe4\xb8\xad")) ids.push_back(id);
  toy_.SetScript(Script(ids));
  auto [events, whole] = BothChats({{"logprobs", true}});
  const Json& content = whole["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(content.size(), 4u);
  EXPECT_EQ(content[0]["token"], " ok");
  EXPECT_EQ(content[1]["token"], "bytes:\\xe4");
  EXPECT_EQ(content[1]["bytes"], Json::array({0xe4}));
}

TEST_F(BugCases, ST17_TheMostLogprobsOnByteTokensAreAllThere) {
  OpenReady();
  toy_.SetScript(Script({250, 128}));
  HttpAnswer chat = Chat({{"logprobs", true}, {"top_logprobs", 20}});
  ASSERT_EQ(chat.status, 200);
  Json chat_choice = Json::parse(chat.body)["choices"][0];
  for (const Json& entry : chat_choice["logprobs"]["content"]) {
    EXPECT_EQ(entry["top_logprobs"].size(), 20u);
    for (const Json& top : entry["top_logprobs"]) {
      EXPECT_EQ(top.size(), 3u);  // token, logprob, bytes
    }
  }
  HttpAnswer completion = Complete({{"logprobs", 20}});
  ASSERT_EQ(completion.status, 200);
  Json choice = Json::parse(completion.body)["choices"][0];
  for (const Json& top : choice["logprobs"]["top_logprobs"]) {
    EXPECT_EQ(top.size(), 20u);
  }
}

TEST_F(BugCases, ST18_AnEngineErrorEndsEachStreamWithOneErrorEvent) {
  OpenReady();
  test::ToyScript script = Script({kTo, kMor, kRow, kOk});
  script.fail_at = 3;
  script.step = 2ms;
  toy_.SetScript(script);
  std::string body = R"({"model":"toy","prompt":"hi","stream":true})";
  RawClient first = Client(), second = Client();
  for (RawClient* client : {&first, &second}) {
    client->Say(
        "POST /v1/completions HTTP/1.1\r\nHost: a\r\nx-request-id: same\r\nContent-Length: " +
        std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  for (RawClient* client : {&first, &second}) {
    HttpAnswer answer = client->Answer();
    EXPECT_EQ(answer.headers["x-request-id"], "same");
    std::vector<Json> events = Events(answer.body);
    int errors = 0;
    for (const Json& event : events) errors += event.is_object() && event.contains("error") ? 1 : 0;
    EXPECT_EQ(errors, 1);
    EXPECT_EQ(events.back()["error"]["code"], "generation_failed");
    EXPECT_EQ(events.back()["error"]["message"], "the toy broke; try again later");
  }
  // Without a stream, and before the first token, it is a plain 500.
  script.fail_at = 0;
  toy_.SetScript(script);
  EXPECT_EQ(Complete({}).status, 500);
  EXPECT_EQ(Complete({{"stream", true}}).status, 500);
  toy_.SetScript(Script({kAll}));
  EXPECT_EQ(Complete({}).status, 200);
}

TEST_F(BugCases, AP01_UsageStandsOnceAfterTheLastChoice) {
  OpenReady();
  toy_.SetScript(Script({kTo, kMor, kRow, kOk, kAll}));
  Json fields = {{"stream", true}, {"stream_options", {{"include_usage", true}}}};
  for (const HttpAnswer& answer : {Complete(fields), Chat(fields)}) {
    std::vector<Json> events = Events(answer.body);
    ASSERT_GE(events.size(), 3u);
    EXPECT_EQ(events.back(), "[DONE]");
    const Json& last = events[events.size() - 2];
    EXPECT_TRUE(last["choices"].empty());
    EXPECT_EQ(last["usage"]["completion_tokens"], 5);
    EXPECT_EQ(last["usage"]["total_tokens"], last["usage"]["prompt_tokens"].get<int>() + 5);
    for (size_t i = 0; i + 2 < events.size(); ++i) {
      ASSERT_TRUE(events[i].contains("usage"));
      EXPECT_TRUE(events[i]["usage"].is_null());
      EXPECT_EQ(events[i]["choices"].size(), 1u);
    }
  }
  for (const Json& event : Events(Complete({{"stream", true}}).body)) {
    EXPECT_FALSE(event.is_object() && event.contains("usage"));
  }
}

TEST_F(BugCases, AP03_FinishReasonIsThereAndNullUntilTheEnd) {
  OpenReady();
  for (const HttpAnswer& answer : {Complete({{"stream", true}}), Chat({{"stream", true}})}) {
    std::vector<Json> events = Events(answer.body);
    for (size_t i = 0; i + 1 < events.size(); ++i) {
      const Json& choice = events[i]["choices"][0];
      ASSERT_TRUE(choice.contains("finish_reason"));
      ASSERT_TRUE(choice.contains("logprobs"));
      ASSERT_TRUE(choice.contains("index"));
      bool last = i + 2 == events.size();
      EXPECT_EQ(choice["finish_reason"], last ? Json("stop") : Json(nullptr));
    }
  }
  Json message = Json::parse(Chat({}).body)["choices"][0];
  for (const char* key : {"finish_reason", "index", "message", "logprobs"}) {
    EXPECT_TRUE(message.contains(key)) << key;
  }
  EXPECT_TRUE(message["logprobs"].is_null());
  EXPECT_TRUE(message["message"].contains("refusal"));
  EXPECT_TRUE(message["message"]["refusal"].is_null());
}

TEST_F(BugCases, AP04_AP06_TooLongARequestSaysBothNumbersAndItsCode) {
  OpenReady();
  HttpAnswer answer = Complete({{"prompt", std::string(100, 'a')}, {"max_tokens", 100}});
  EXPECT_EQ(answer.status, 400);
  Json error = Json::parse(answer.body)["error"];
  EXPECT_EQ(error["code"], "context_length_exceeded");
  EXPECT_EQ(
      error["message"],
      "prompt: 100 prompt tokens and max_tokens 100: at most 128 tokens together, the context "
      "length of this model; shorten the prompt or lower max_tokens");
  // At the limit and one over.
  EXPECT_EQ(Complete({{"prompt", std::string(28, 'a')}, {"max_tokens", 100}}).status, 200);
  EXPECT_EQ(Complete({{"prompt", std::string(29, 'a')}, {"max_tokens", 100}}).status, 400);
  EXPECT_EQ(Complete({{"prompt", std::string(127, 'a')}}).status, 200);
  EXPECT_EQ(Complete({{"prompt", std::string(128, 'a')}}).status, 400);
  // Far too long is refused before it is encoded.
  EXPECT_EQ(Json::parse(Complete({{"prompt", std::string(1 << 20, 'a')}}).body)["error"]["code"],
            "context_length_exceeded");
}

TEST_F(BugCases, AP08_ABadBodyDoesNotEndTheProcess) {
  OpenReady();
  EXPECT_EQ(Client().Post("/v1/chat/completions", "{:").status, 400);
  EXPECT_EQ(Client().Post("/v1/chat/completions", "{}").status, 400);
  EXPECT_EQ(Chat({}).status, 200);
}

TEST_F(BugCases, AP12_AClientThatHangsUpFreesItsRequest) {
  OpenReady();
  test::ToyScript script = Script({kTo});
  script.step = 10ms;
  toy_.SetScript(script);
  for (bool stream : {false, true}) {
    {
      RawClient client = Client();
      std::string body = Json({{"model", "toy"},
                               {"prompt", "hi"},
                               {"ignore_eos", true},
                               {"max_tokens", 120},
                               {"stream", stream}})
                             .dump();
      client.Say("POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                 std::to_string(body.size()) + "\r\n\r\n" + body);
      ASSERT_TRUE(Eventually([&] { return toy_.stats().running == 1; }));
    }
    EXPECT_TRUE(Eventually([&] { return toy_.stats().running == 0; }, 0.5));
  }
  EXPECT_EQ(toy_.cancelled_while_running(), 2);
  EXPECT_EQ(Metric("ashlar_requests_finished_total{reason=\"cancelled\"}"), 2);
  EXPECT_TRUE(Eventually([&] {
    return Metric("ashlar_http_requests_total{route=\"/v1/completions\",code=\"499\"}") == 2;
  }));
  EXPECT_EQ(Metric("vllm:kv_cache_usage_perc{model_name=\"toy\",engine=\"0\"}"), 0);
}

TEST_F(BugCases, AP14_LeavingAtTheLastStepGivesOneEndEach) {
  OpenReady();
  uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  std::string body = R"({"model":"toy","prompt":"hi","stream":true})";
  const int rounds = 300;
  for (int i = 0; i < rounds; ++i) {
    RawClient client = Client();
    client.Say("POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: " +
               std::to_string(body.size()) + "\r\n\r\n" + body);
    usleep(static_cast<useconds_t>(random() % 1500));
  }
  // The connection that asks is the only one left.
  EXPECT_TRUE(Eventually([&] { return Metric("ashlar_http_connections_open") == 1; }));
  EngineStats stats = toy_.stats();
  EXPECT_EQ(stats.running, 0);
  int64_t ended = 0;
  for (int64_t count : stats.finished) ended += count;
  EXPECT_EQ(ended, stats.prompt_tokens / 2);  // each prompt has two
  EXPECT_LE(ended, rounds);
  EXPECT_EQ(Complete({}).status, 200);
}

TEST_F(BugCases, AP15_AbsentAndNullMaxTokensAreTheDefaultAndZeroIsRefused) {
  OpenReady();
  for (const char* name : {"max_tokens", "max_completion_tokens"}) {
    Json null = Json::object();
    null[name] = nullptr;
    EXPECT_EQ(Complete(null).status, 200);
    EXPECT_EQ(toy_.last_request().max_tokens, 16);
    EXPECT_EQ(Chat(null).status, 200);
    EXPECT_GT(toy_.last_request().max_tokens, 16);  // the rest of the context
    Json zero = Json::object();
    zero[name] = 0;
    HttpAnswer answer = Chat(zero);
    EXPECT_EQ(answer.status, 400);
    EXPECT_EQ(Json::parse(answer.body)["error"]["param"], name);
  }
}

TEST_F(BugCases, AP16_EveryFormOfPromptsGivesChoicesInOrder) {
  OpenReady();
  for (Json prompt : {Json("one"), Json({"one", "two"}), Json({1, 2, 3}), Json({{1}, {2, 3}})}) {
    HttpAnswer answer = Complete({{"prompt", prompt}, {"n", 2}});
    ASSERT_EQ(answer.status, 200) << prompt;
    Json choices = Json::parse(answer.body)["choices"];
    size_t prompts = prompt.is_string() || prompt[0].is_number() ? 1 : prompt.size();
    ASSERT_EQ(choices.size(), prompts * 2);
    for (size_t i = 0; i < choices.size(); ++i) EXPECT_EQ(choices[i]["index"], i);
  }
  EXPECT_EQ(Complete({{"prompt", {"a", 1}}}).status, 400);
}

TEST_F(BugCases, AP17_ManyStopStringsAreRefusedBeforeAnyWork) {
  OpenReady();
  for (size_t count : {5, 5'000, 500'000}) {
    Json stops = Json::array();
    for (size_t i = 0; i < count; ++i) stops.push_back("s");
    std::string body = Json({{"model", "toy"}, {"prompt", "hi"}, {"stop", stops}}).dump();
    EXPECT_EQ(Client().Post("/v1/completions", body).status, 400) << count;
    body = Json({{"model", "toy"}, {"prompt", "hi"}, {"bad_words", stops}}).dump();
    EXPECT_EQ(Client().Post("/v1/completions", body).status, 400) << count;
  }
  EXPECT_EQ(toy_.stats().prompt_tokens, 0);
}

TEST_F(BugCases, AP19_PromptLogprobsOfMinusOneAreRefused) {
  OpenReady();
  EXPECT_EQ(Complete({{"prompt_logprobs", -1}}).status, 400);
  Json body = Json::parse(Complete({{"prompt", "abc"}, {"prompt_logprobs", 2}}).body);
  const Json& list = body["choices"][0]["prompt_logprobs"];
  ASSERT_EQ(list.size(), 3u);
  EXPECT_TRUE(list[0].is_null());
  EXPECT_EQ(list[1].size(), 2u);
  EXPECT_EQ(list[1]["98"]["decoded_token"], "b");
  EXPECT_EQ(list[1]["98"]["rank"], 1);
}

TEST_F(BugCases, AP21_IdleConnectionsOutlastTheUsualProxy) {
  EXPECT_GT(HttpLimits{}.idle_seconds, 60);
  OpenReady();
  RawClient client = Client();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(client.Get("/v1/models").status, 200);
    usleep(50'000);  // real pauses: end to end
  }
}

TEST_F(BugCases, AP24_HealthAnswersWhileEveryPlaceStreams) {
  ApiServer::Options options;
  options.limits.connections = 64;
  OpenReady(std::move(options));
  test::ToyScript script = Script({kTo});
  script.step = 20ms;
  toy_.SetScript(script);
  std::string body =
      R"({"model":"toy","prompt":"hi","stream":true,"ignore_eos":true,"max_tokens":100})";
  std::vector<RawClient> streams;
  for (int i = 0; i < 64; ++i) {
    streams.push_back(Client());
    streams.back().Say("POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                       std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  ASSERT_TRUE(Eventually([&] { return toy_.stats().running == 64; }));
  std::vector<double> times;
  for (int i = 0; i < 10; ++i) {
    for (const char* path : {"/readyz", "/metrics"}) {
      auto start = Clock::now();
      EXPECT_EQ(Get(path).status, 200);
      times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
  }
  std::sort(times.begin(), times.end());
  EXPECT_LT(times[times.size() / 2], 0.1);
  script.step = 200us;
  toy_.SetScript(script);
  for (RawClient& stream : streams) {
    HttpAnswer answer = stream.Answer();
    EXPECT_TRUE(answer.whole);
    EXPECT_TRUE(answer.body.ends_with("data: [DONE]\n\n"));
  }
}

TEST_F(BugCases, TK01_TheChatTemplateAloneWritesTheBeginning) {
  // This tokenizer adds <|end|> in front of what it encodes; the template writes it too.
  Json json = Json::parse(test::TinyTokenizerJson(Words()));
  Json special = {{"SpecialToken", {{"id", "<|end|>"}, {"type_id", 0}}}};
  Json sequence = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  json["post_processor"] = {{"type", "TemplateProcessing"},
                            {"single", Json::array({special, sequence})},
                            {"pair", Json::array({special, sequence})},
                            {"special_tokens",
                             {{"<|end|>",
                               {{"id", "<|end|>"},
                                {"ids", Json::array({kEnd})},
                                {"tokens", Json::array({"<|end|>"})}}}}}};
  tokenizer_ = std::move(Tokenizer::FromJson(json.dump())).value();
  template_ =
      std::move(ChatTemplate::Compile("<|end|>{{ messages[0].content }}", "<|end|>", "")).value();
  OpenReady();
  EXPECT_EQ(Complete({{"prompt", "a"}}).status, 200);
  EXPECT_EQ(toy_.last_request().prompt, (std::vector<int32_t>{kEnd, 'a'}));
  EXPECT_EQ(Chat({}).status, 200);
  EXPECT_EQ(toy_.last_request().prompt, (std::vector<int32_t>{kEnd, 'h', 'i'}));
}

TEST_F(BugCases, TK06_EarlierToolCallsReachTheTemplate) {
  plan_.context_length = 1024;
  OpenReady();
  Json call = {{"id", "call_7"},
               {"type", "function"},
               {"function", {{"name", "sum"}, {"arguments", "{\"a\": 1}"}}}};
  Json messages = Json::array();
  messages.push_back({{"role", "user"}, {"content", "q"}});
  messages.push_back(
      {{"role", "assistant"}, {"content", nullptr}, {"tool_calls", Json::array({call})}});
  messages.push_back({{"role", "tool"}, {"tool_call_id", "call_7"}, {"content", "2"}});
  ASSERT_EQ(Chat({{"messages", messages}}).status, 200);
  std::string rendered;
  for (int32_t id : toy_.last_request().prompt) rendered += tokenizer_->TokenBytes(id);
  EXPECT_EQ(rendered, "<user>q\n<assistant>(call_7 sum {\"a\": 1})\n<tool>2[call_7]\n<assistant>");
}

TEST_F(BugCases, KV07_EchoWithLogprobsIsCompleteTwice) {
  plan_.context_length = 512;
  OpenReady();
  for (int round = 0; round < 2; ++round) {
    HttpAnswer answer = Complete({{"prompt", std::vector<int>(300, 97)},
                                  {"echo", true},
                                  {"logprobs", 5},
                                  {"max_tokens", 1}});
    ASSERT_EQ(answer.status, 200);
    Json choice = Json::parse(answer.body)["choices"][0];
    EXPECT_EQ(choice["text"], std::string(300, 'a') + "all");
    const Json& logprobs = choice["logprobs"];
    for (const char* key : {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
      EXPECT_EQ(logprobs[key].size(), 301u) << key;
    }
    EXPECT_TRUE(logprobs["token_logprobs"][0].is_null());
    EXPECT_TRUE(logprobs["top_logprobs"][0].is_null());
    EXPECT_EQ(logprobs["top_logprobs"][1].size(), 5u);
    EXPECT_EQ(logprobs["text_offset"][300], 300);
  }
}

TEST_F(BugCases, PR01_ThePortIsOpenAtOnceAndReadyMeansServing) {
  Open();
  EXPECT_EQ(Get("/livez").status, 200);
  HttpAnswer early = Get("/readyz");
  EXPECT_EQ(early.status, 503);
  EXPECT_EQ(early.body, "spec\n");
  HttpAnswer refused = Complete({});
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers["retry-after"], "2");
  EXPECT_EQ(Json::parse(refused.body)["error"]["code"], "model_loading");
  std::atomic<bool> stop{false};
  std::thread loader([&] {
    usleep(100'000);
    AttachModel();
  });
  while (Get("/readyz").status != 200 && !stop) usleep(1000);
  EXPECT_EQ(Complete({}).status, 200);
  loader.join();
}

TEST_F(BugCases, PR06_TerminationLosesNoRunningStream) {
  OpenReady();
  test::ToyScript script = Script({kTo});
  script.step = 10ms;
  toy_.SetScript(script);
  std::string body =
      R"({"model":"toy","prompt":"hi","stream":true,"ignore_eos":true,"max_tokens":100})";
  std::vector<RawClient> streams;
  for (int i = 0; i < 20; ++i) {
    streams.push_back(Client());
    streams.back().Say("POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                       std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  ASSERT_TRUE(Eventually([&] { return toy_.stats().running == 20; }));
  std::atomic<int> clean{-1};
  std::thread drain([&] { clean = server_->Drain(0.2, 60) ? 1 : 0; });
  ASSERT_TRUE(Eventually([&] { return readiness_.snapshot().phase == Phase::kDraining; }));
  EXPECT_EQ(Get("/readyz").status, 503);
  script.step = 200us;
  toy_.SetScript(script);
  for (RawClient& stream : streams) {
    HttpAnswer answer = stream.Answer();
    EXPECT_TRUE(answer.whole);
    EXPECT_TRUE(answer.body.ends_with("data: [DONE]\n\n"));
    EXPECT_EQ(FinishReasonOf(Events(answer.body)), "length");
  }
  drain.join();
  EXPECT_EQ(clean, 1);
}

TEST_F(BugCases, PR08_TheLameDuckServesNewConnectionsAndThenRefuses) {
  OpenReady();
  std::thread drain([&] { server_->Drain(60, 10); });
  ASSERT_TRUE(Eventually([&] { return readiness_.snapshot().phase == Phase::kDraining; }));
  auto start = Clock::now();
  int served = 0;
  while (Clock::now() - start < 200ms) {
    HttpAnswer answer = Complete({});
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.headers["connection"], "close");
    ++served;
  }
  EXPECT_GT(served, 0);
  server_->EndDrainNow();  // as a second signal does
  drain.join();
  EXPECT_FALSE(Client().connected());
}

TEST_F(BugCases, MM01_MemoryIsFlatOverManyShortRequests) {
  OpenReady();
  toy_.SetScript(Script({kTo}));
  RawClient client = Client();
  // Ids and not text: the tokenizer remembers its last 10,000 words, which fill up for longer than
  // a test should take.
  auto serve = [&](int from, int to) {
    for (int i = from; i < to; ++i) {
      std::string body = Json({{"model", "toy"},
                               {"prompt", {i % 256, i / 256 % 256, i / 65'536}},
                               {"max_tokens", 1}})
                             .dump();
      ASSERT_EQ(client.Post("/v1/completions", body).status, 200);
    }
  };
  serve(0, 500);
  int64_t before = AllocatedBytes();
  serve(500, 1500);
  EXPECT_LT(AllocatedBytes() - before, 16 << 10);
}

}  // namespace
}  // namespace ashlar
