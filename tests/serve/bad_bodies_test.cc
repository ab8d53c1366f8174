// Bodies that are each wrong in one way, over a real socket.
#include <gtest/gtest.h>

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
    EXPECT_FALSE(error["message"].get<std::string>().empty());
    EXPECT_TRUE(answer.headers.contains("x-request-id"));
    EXPECT_EQ(Complete({}).status, 200);
  }
}

}  // namespace
}  // namespace ashlar
