// Bodies that are each wrong in one way, over a real socket; those of AP-07 first.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "support/http_api_fixture.h"

namespace ashlar {
namespace {

struct BadBody {
  const char* path;
  std::string body;
  int status;
  const char* code;
  const char* param;  // "" when null
};

const std::string kChat = "/v1/chat/completions";

std::string Completion(const std::string& fields) {
  return R"({"model":"toy","prompt":"hi",)" + fields + "}";
}
std::string Chat(const std::string& fields) {
  return R"({"model":"toy","messages":[{"role":"user","content":"hi"}],)" + fields + "}";
}

std::vector<BadBody> BadBodies() {
  const char* completions = "/v1/completions";
  const char* chat = "/v1/chat/completions";
  return {
      {completions, "", 400, "invalid_json", ""},
      {completions, "{", 400, "invalid_json", ""},
      {completions, "{:", 400, "invalid_json", ""},
      {completions, "[]", 400, "invalid_json", ""},
      {completions, "\"x\"", 400, "invalid_json", ""},
      {completions, "null", 400, "invalid_json", ""},
      {completions, "{\"model\":\"\xff\"}", 400, "invalid_json", ""},
      {completions, std::string(3 << 20, ' '), 400, "invalid_json", ""},
      {completions, R"({"model":"toy","model":"toy","prompt":"x"})", 400, "invalid_json", ""},
      {completions, R"({"model":"toy","prompt":"x"} x)", 400, "invalid_json", ""},
      {completions, std::string(100, '['), 400, "invalid_json", ""},
      {completions, Completion("\"temperature\":1e999"), 400, "invalid_json", ""},
      {completions, Completion("\"temperature\":NaN"), 400, "invalid_json", ""},
      {completions, R"({"prompt":"x"})", 400, "missing_required_parameter", "model"},
      {completions, R"({"model":"toy"})", 400, "missing_required_parameter", "prompt"},
      {completions, R"({"model":"other","prompt":"x"})", 404, "model_not_found", "model"},
      {completions, R"({"model":5,"prompt":"x"})", 400, "invalid_type", "model"},
      {completions, R"({"model":"toy","prompt":""})", 400, "invalid_value", "prompt"},
      {completions, R"({"model":"toy","prompt":["a",[1]]})", 400, "invalid_type", "prompt[1]"},
      {completions, Completion("\"max_tokens\":0"), 400, "invalid_value", "max_tokens"},
      {completions, Completion("\"max_tokens\":127"), 400, "context_length_exceeded", "prompt"},
      {completions, Completion("\"max_tokens\":1.5"), 400, "invalid_type", "max_tokens"},
      {completions, Completion("\"temperature\":-1"), 400, "invalid_value", "temperature"},
      {completions, Completion("\"top_p\":0"), 400, "invalid_value", "top_p"},
      {completions, Completion("\"n\":17"), 400, "invalid_value", "n"},
      {completions, Completion("\"logprobs\":21"), 400, "invalid_value", "logprobs"},
      {completions, Completion("\"prompt_logprobs\":-1"), 400, "invalid_value", "prompt_logprobs"},
      {completions, Completion("\"stop\":[\"\"]"), 400, "invalid_value", "stop[0]"},
      {completions, Completion("\"stop_token_ids\":[99999]"), 400, "invalid_value",
       "stop_token_ids[0]"},
      {completions, Completion("\"logit_bias\":{\"-1\":1}"), 400, "invalid_value", "logit_bias"},
      {completions, Completion("\"strem\":true"), 400, "unknown_parameter", "strem"},
      {completions, Completion("\"suffix\":\"x\""), 400, "unsupported_parameter", "suffix"},
      {completions, Completion("\"bad_words\":[\"x\"]"), 400, "unsupported_parameter", "bad_words"},
      {chat, R"({"model":"toy"})", 400, "missing_required_parameter", "messages"},
      {chat, R"({"model":"toy","messages":[]})", 400, "invalid_value", "messages"},
      {chat, R"({"model":"toy","messages":[{"role":"user"}]})", 400, "missing_required_parameter",
       "messages[0].content"},
      {chat, R"({"model":"toy","messages":[{"role":"x","content":"a"}]})", 400, "invalid_value",
       "messages[0].role"},
      {chat, R"({"model":"toy","messages":[{"role":"user","content":[{"type":"image_url"}]}]})",
       400, "unsupported_parameter", "messages[0].content[0].type"},
      {chat, Chat(R"("tools":[{"type":"function","function":{"name":"f"}}])"), 400,
       "unsupported_parameter", "tools"},
      {chat, Chat(R"("response_format":{"type":"json_object"})"), 400, "unsupported_parameter",
       "response_format"},
      {chat, Chat(R"("chat_template":"{{ x }}")"), 400, "unsupported_parameter", "chat_template"},
      {chat, Chat(R"("top_logprobs":2)"), 400, "invalid_value", "top_logprobs"},
      {chat, Chat(R"("stream_options":{"include_usage":true})"), 400, "invalid_value",
       "stream_options"},
      {chat, Chat(R"("prompt":"x")"), 400, "unknown_parameter", "prompt"},
  };
}

class BadBodiesTest : public test::ApiFixture {};

TEST_F(BadBodiesTest, EachGetsOneErrorInOpenAiFormAndTheNextRequestWorks) {
  OpenReady();
  std::vector<BadBody> bodies = BadBodies();
  EXPECT_GE(bodies.size(), 30u);
  for (const BadBody& bad : bodies) {
    SCOPED_TRACE(bad.body.substr(0, 100));
    test::HttpAnswer answer = Client().Post(bad.path, bad.body);
    EXPECT_EQ(answer.status, bad.status);
    ASSERT_TRUE(answer.whole);
    Json error = Json::parse(answer.body)["error"];
    ASSERT_EQ(error.size(), 4u) << answer.body;
    EXPECT_EQ(error["code"], bad.code) << answer.body;
    EXPECT_EQ(error["type"], "invalid_request_error");
    EXPECT_EQ(error["param"], *bad.param == 0 ? Json(nullptr) : Json(bad.param)) << answer.body;
    // One mistake is one line.
    std::string message = error["message"];
    EXPECT_FALSE(message.empty());
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_TRUE(answer.headers.contains("x-request-id"));
    EXPECT_EQ(Complete({}).status, 200);
  }
}

TEST_F(BadBodiesTest, AllMistakesOfOneBodyAreInOneAnswer) {
  OpenReady();
  auto error = [&](const char* path, const std::string& body) {
    test::HttpAnswer answer = Client().Post(path, body);
    EXPECT_EQ(answer.status, 400);
    return Json::parse(answer.body)["error"];
  };
  Json completion =
      error("/v1/completions", R"({"model":5,"temperature":-1,"n":"x","strem":true,"suffix":"y"})");
  EXPECT_EQ(completion["param"], "model");
  EXPECT_EQ(completion["code"], "invalid_type");
  EXPECT_EQ(completion["message"],
            "model: 5 is no string: a string of at most 256 bytes; send a JSON string\n"
            "temperature: -1 is out of range: a number of at least 0 and at most 2; choose one of "
            "these or leave it out\n"
            "n: \"x\" is no integer: an integer from 1 to 16; send a JSON integer\n"
            "prompt: it is absent: a string, a list of strings, a list of token ids or a list of "
            "lists of token ids; add it\n"
            "suffix: \"y\": this build does not do insertion before a suffix; leave it out\n"
            "strem: no field has this name: the fields that docs/api.md lists; did you mean "
            "stream?");
  Json chat = error("/v1/chat/completions",
                    R"({"model":"toy","messages":[{"role":"x","content":1},"y",)"
                    R"({"role":"user","content":[{"type":"text"},5]}],)"
                    R"("stream":true,"stream_options":{"continuous_usage_stats":true,"z":1}})");
  std::vector<std::string> places;
  std::istringstream lines(chat["message"].get<std::string>());
  for (std::string line; std::getline(lines, line);) {
    places.push_back(line.substr(0, line.find(':')));
  }
  EXPECT_EQ(places,
            (std::vector<std::string>{"stream_options.continuous_usage_stats", "stream_options.z",
                                      "messages[0].role", "messages[0].content", "messages[1]",
                                      "messages[2].content[0].text", "messages[2].content[1]"}));
  EXPECT_EQ(chat["param"], places[0]);
}

TEST_F(BadBodiesTest, AnAnswerStaysShortHoweverWrongABodyIs) {
  OpenReady();
  Json body = {{"model", "toy"}, {"prompt", "hi"}};
  for (int i = 0; i < 1000; ++i) body["no field " + std::to_string(i)] = i;
  test::HttpAnswer answer = Post("/v1/completions", body);
  EXPECT_EQ(answer.status, 400);
  std::string message = Json::parse(answer.body)["error"]["message"];
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 15);
}

}  // namespace
}  // namespace ashlar
