#include "serve/openai_request.h"

#include <gtest/gtest.h>

#include "serve/other_fields.h"

namespace ashlar {
namespace {

RequestLimits Limits() {
  RequestLimits limits;
  limits.context_length = 128;
  limits.vocabulary = 300;
  return limits;
}

ParsedRequest Completion(const std::string& fields) {
  return ParseCompletion(
      R"({"model":"m","prompt":"p")" + (fields.empty() ? "" : "," + fields) + "}", Limits());
}
ParsedRequest Chat(const std::string& fields) {
  return ParseChat(R"({"model":"m","messages":[{"role":"user","content":"p"}])" +
                       (fields.empty() ? "" : "," + fields) + "}",
                   Limits());
}
ApiRequest Good(ParsedRequest parsed) {
  if (auto* error = std::get_if<ApiError>(&parsed)) {
    ADD_FAILURE() << error->problem.Text();
    return {};
  }
  return std::get<ApiRequest>(std::move(parsed));
}
std::string ErrorOf(const ParsedRequest& parsed) {
  const auto* error = std::get_if<ApiError>(&parsed);
  return error == nullptr ? "accepted"
                          : std::string(Info(error->code).name) + " " + error->problem.place;
}

TEST(OpenAiRequest, LeavesDefaultsWhereNothingIsSaid) {
  ApiRequest request = Good(Completion(""));
  EXPECT_EQ(request.model, "m");
  EXPECT_EQ(request.n, 1);
  EXPECT_FALSE(request.max_tokens);
  EXPECT_FALSE(request.stream);
  EXPECT_FALSE(request.sampling.seed);
  EXPECT_EQ(request.sampling.temperature, 1);
  EXPECT_EQ(request.sampling.logprobs, -1);
  EXPECT_TRUE(request.add_special);
  EXPECT_FALSE(Good(Chat("")).add_special);  // the template writes BOS
}

TEST(OpenAiRequest, NullIsAbsentForEveryField) {
  for (const char* field : {"max_tokens",
                            "max_completion_tokens",
                            "temperature",
                            "top_p",
                            "top_k",
                            "min_p",
                            "n",
                            "seed",
                            "stop",
                            "stop_token_ids",
                            "logit_bias",
                            "stream",
                            "stream_options",
                            "presence_penalty",
                            "frequency_penalty",
                            "repetition_penalty",
                            "logprobs",
                            "cache_salt",
                            "ignore_eos",
                            "min_tokens",
                            "prompt_logprobs",
                            "user",
                            "tools",
                            "response_format",
                            "best_of"}) {
    Good(Completion("\"" + std::string(field) + "\":null"));
  }
}

TEST(OpenAiRequest, ReadsEveryFieldThatIsCarriedOut) {
  ApiRequest request = Good(Completion(R"("temperature":0,"top_p":0.5,"top_k":-1,"min_p":0.1,
      "n":3,"seed":-1,"stop":["a","b"],"stop_token_ids":[1,2],"ignore_eos":true,"min_tokens":2,
      "max_tokens":5,"presence_penalty":-2,"frequency_penalty":2,"repetition_penalty":1.5,
      "logit_bias":{"7":-100,"8":1.5},"logprobs":2,"echo":true,"cache_salt":"s","stream":true,
      "stream_options":{"include_usage":true},"include_stop_str_in_output":true,
      "skip_special_tokens":false,"best_of":3)"));
  EXPECT_EQ(request.sampling.temperature, 0);
  EXPECT_EQ(request.sampling.top_k, 0);
  EXPECT_EQ(request.n, 3);
  EXPECT_EQ(request.sampling.seed, ~uint64_t{0});
  EXPECT_EQ(request.stops, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(request.stop_ids, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(request.max_tokens, 5);
  EXPECT_EQ(request.sampling.logit_bias.size(), 2u);
  EXPECT_EQ(request.sampling.logit_bias[1], (std::pair<int32_t, float>{8, 1.5f}));
  EXPECT_EQ(request.sampling.prompt_logprobs, 2);  // echo with logprobs
  EXPECT_FALSE(request.show_prompt_logprobs);
  EXPECT_TRUE(request.include_usage);
  EXPECT_TRUE(request.keep_stop);
  EXPECT_FALSE(request.skip_special);
}

TEST(OpenAiRequest, TakesBothNamesOfMaxTokens) {
  EXPECT_EQ(Good(Chat(R"("max_completion_tokens":7)")).max_tokens, 7);
  EXPECT_EQ(Good(Chat(R"("max_tokens":7)")).max_tokens, 7);
  EXPECT_EQ(Good(Chat(R"("max_tokens":7,"max_completion_tokens":7)")).max_tokens, 7);
  EXPECT_EQ(ErrorOf(Chat(R"("max_tokens":7,"max_completion_tokens":8)")),
            "invalid_value max_tokens");
}

TEST(OpenAiRequest, ChatLogprobsAreABooleanAndACount) {
  EXPECT_EQ(Good(Chat(R"("logprobs":true)")).sampling.logprobs, 0);
  EXPECT_EQ(Good(Chat(R"("logprobs":true,"top_logprobs":20)")).sampling.logprobs, 20);
  EXPECT_EQ(Good(Chat(R"("logprobs":false)")).sampling.logprobs, -1);
  EXPECT_EQ(Good(Completion(R"("logprobs":0)")).sampling.logprobs, 0);
}

struct Bad {
  const char* fields;
  const char* error;
};

TEST(OpenAiRequest, RefusesEachFieldOutOfItsRange) {
  const Bad cases[] = {
      {R"("temperature":2.1)", "invalid_value temperature"},
      {R"("temperature":-0.1)", "invalid_value temperature"},
      {R"("temperature":"1")", "invalid_type temperature"},
      {R"("temperature":true)", "invalid_type temperature"},
      {R"("top_p":0)", "invalid_value top_p"},
      {R"("top_p":1.01)", "invalid_value top_p"},
      {R"("top_k":-2)", "invalid_value top_k"},
      {R"("top_k":1.0)", "invalid_type top_k"},
      {R"("min_p":-1)", "invalid_value min_p"},
      {R"("n":0)", "invalid_value n"},
      {R"("n":17)", "invalid_value n"},
      {R"("n":"2")", "invalid_type n"},
      {R"("best_of":2)", "unsupported_parameter best_of"},
      {R"("max_tokens":0)", "invalid_value max_tokens"},
      {R"("max_tokens":-1)", "invalid_value max_tokens"},
      {R"("max_tokens":{})", "invalid_type max_tokens"},
      {R"("max_tokens":false)", "invalid_type max_tokens"},
      {R"("max_tokens":18446744073709551615)", "invalid_value max_tokens"},
      {R"("max_completion_tokens":0)", "invalid_value max_completion_tokens"},
      {R"("min_tokens":5,"max_tokens":4)", "invalid_value min_tokens"},
      {R"("seed":1.5)", "invalid_type seed"},
      {R"("seed":9223372036854775808)", "invalid_value seed"},
      {R"("stop":"")", "invalid_value stop"},
      {R"("stop":["a","b","c","d","e"])", "invalid_value stop"},
      {R"("stop":[1])", "invalid_type stop[0]"},
      {R"("stop":{})", "invalid_type stop"},
      {R"("stop_token_ids":[300])", "invalid_value stop_token_ids[0]"},
      {R"("stop_token_ids":[-1])", "invalid_value stop_token_ids[0]"},
      {R"("stop_token_ids":5)", "invalid_type stop_token_ids"},
      {R"("logit_bias":{"x":1})", "invalid_value logit_bias"},
      {R"("logit_bias":{"300":1})", "invalid_value logit_bias"},
      {R"("logit_bias":{"7":101})", "invalid_value logit_bias.7"},
      {R"("logit_bias":{"7":"1"})", "invalid_type logit_bias.7"},
      {R"("logit_bias":[])", "invalid_type logit_bias"},
      {R"("presence_penalty":2.5)", "invalid_value presence_penalty"},
      {R"("frequency_penalty":-3)", "invalid_value frequency_penalty"},
      {R"("repetition_penalty":0)", "invalid_value repetition_penalty"},
      {R"("logprobs":21)", "invalid_value logprobs"},
      {R"("logprobs":true)", "invalid_type logprobs"},
      {R"("prompt_logprobs":-1)", "invalid_value prompt_logprobs"},
      {R"("prompt_logprobs":21)", "invalid_value prompt_logprobs"},
      {R"("prompt_logprobs":1,"stream":true)", "unsupported_parameter prompt_logprobs"},
      {R"("stream":1)", "invalid_type stream"},
      {R"("stream":"true")", "invalid_type stream"},
      {R"("stream_options":{"include_usage":true})", "invalid_value stream_options"},
      {R"("stream":true,"stream_options":[])", "invalid_type stream_options"},
      {R"("stream":true,"stream_options":{"include_usage":1})",
       "invalid_type stream_options.include_usage"},
      {R"("stream":true,"stream_options":{"wrong":1})", "unknown_parameter stream_options.wrong"},
      {R"("echo":"yes")", "invalid_type echo"},
      {R"("cache_salt":5)", "invalid_type cache_salt"},
      {R"("suffix":"x")", "unsupported_parameter suffix"},
      {R"("temprature":1)", "unknown_parameter temprature"},
      {R"("messages":[])", "unknown_parameter messages"},
  };
  for (const Bad& bad : cases) EXPECT_EQ(ErrorOf(Completion(bad.fields)), bad.error) << bad.fields;
}

TEST(OpenAiRequest, NamesTheNearestField) {
  ParsedRequest parsed = Completion(R"("temprature":1)");
  EXPECT_EQ(std::get<ApiError>(parsed).problem.Text(),
            "temprature: no field has this name: the fields that docs/api.md lists; did you mean "
            "temperature?");
}

TEST(OpenAiRequest, RefusalsSayWhatIsAllowedAndWhatToDo) {
  EXPECT_EQ(std::get<ApiError>(Completion(R"("n":99)")).problem.Text(),
            "n: 99 is out of range: an integer from 1 to 16; choose one of these or leave it out");
}

TEST(OpenAiRequest, RefusesWhatWouldChangeTheAnswerButTakesItsNeutralForm) {
  for (const RefusedField& row : kRefusedFields) {
    for (const Json& neutral : Json::parse(row.neutral)) {
      Good(Chat("\"" + std::string(row.name) + "\":" + neutral.dump()));
    }
    std::string error = ErrorOf(Chat("\"" + std::string(row.name) + "\":[{\"x\":1}]"));
    EXPECT_EQ(error, "unsupported_parameter " + std::string(row.name));
  }
  for (std::string_view name : kIgnoredFields) {
    Good(Chat("\"" + std::string(name) + "\":{\"any\":[1]}"));
  }
}

TEST(OpenAiRequest, ReadsTheFourFormsOfPrompts) {
  auto prompts = [](const std::string& prompt) {
    ApiRequest request =
        Good(ParseCompletion(R"({"model":"m","prompt":)" + prompt + "}", Limits()));
    return std::get<std::vector<Prompt>>(request.input);
  };
  EXPECT_EQ(prompts(R"("one")").size(), 1u);
  EXPECT_EQ(prompts(R"(["one","two"])").size(), 2u);
  EXPECT_EQ(std::get<std::vector<int32_t>>(prompts("[1,2,3]")[0]), (std::vector<int32_t>{1, 2, 3}));
  EXPECT_EQ(prompts("[[1],[2,3]]").size(), 2u);
  EXPECT_EQ(prompts(Json(std::vector<std::string>(64, "p")).dump()).size(), 64u);
}

TEST(OpenAiRequest, RefusesMixedAndEmptyPrompts) {
  const Bad cases[] = {
      {R"([])", "invalid_value prompt"},
      {R"(["a",1])", "invalid_type prompt[1]"},
      {R"([1,"a"])", "invalid_value prompt[1]"},
      {R"([[1],"a"])", "invalid_type prompt[1]"},
      {R"(["a",[1]])", "invalid_type prompt[1]"},
      {R"([[]])", "invalid_value prompt[0]"},
      {R"([1.5])", "invalid_value prompt[0]"},
      {R"([300])", "invalid_value prompt[0]"},
      {R"([true])", "invalid_type prompt[0]"},
      {R"({})", "invalid_type prompt"},
      {R"(null)", "missing_required_parameter prompt"},
  };
  for (const Bad& bad : cases) {
    EXPECT_EQ(ErrorOf(ParseCompletion(R"({"model":"m","prompt":)" + std::string(bad.fields) + "}",
                                      Limits())),
              bad.error)
        << bad.fields;
  }
  EXPECT_EQ(ErrorOf(ParseCompletion(
                R"({"model":"m","prompt":)" + Json(std::vector<std::string>(65, "p")).dump() + "}",
                Limits())),
            "invalid_value prompt");
  EXPECT_EQ(
      ErrorOf(ParseCompletion(
          R"({"model":"m","prompt":)" + Json(std::vector<int>(129, 1)).dump() + "}", Limits())),
      "context_length_exceeded prompt");
}

ParsedRequest Messages(const std::string& messages) {
  return ParseChat(R"({"model":"m","messages":)" + messages + "}", Limits());
}

TEST(OpenAiRequest, RefusesMessagesThatAreNone) {
  const Bad cases[] = {
      {R"("hi")", "invalid_type messages"},
      {R"([])", "invalid_value messages"},
      {R"(["hi"])", "invalid_type messages[0]"},
      {R"([{}])", "missing_required_parameter messages[0].role"},
      {R"([{"role":"robot","content":"x"}])", "invalid_value messages[0].role"},
      {R"([{"role":5,"content":"x"}])", "invalid_type messages[0].role"},
      {R"([{"role":"user"}])", "missing_required_parameter messages[0].content"},
      {R"([{"role":"user","content":null}])", "missing_required_parameter messages[0].content"},
      {R"([{"role":"user","content":5}])", "invalid_type messages[0].content"},
      {R"([{"role":"user","content":[5]}])", "invalid_type messages[0].content[0]"},
      {R"([{"role":"user","content":[{"type":"image_url","image_url":{}}]}])",
       "unsupported_parameter messages[0].content[0].type"},
      {R"([{"role":"user","content":[{"type":"text"}]}])",
       "missing_required_parameter messages[0].content[0].text"},
      {R"([{"role":"tool","content":"x"}])", "missing_required_parameter messages[0].tool_call_id"},
      {R"([{"role":"assistant","tool_calls":{}}])", "invalid_type messages[0].tool_calls"},
      {R"([{"role":"assistant","tool_calls":[{"id":"a"}]}])",
       "missing_required_parameter messages[0].tool_calls[0].function"},
      {R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":5}}]}])",
       "invalid_type messages[0].tool_calls[0].function.arguments"},
  };
  for (const Bad& bad : cases) EXPECT_EQ(ErrorOf(Messages(bad.fields)), bad.error) << bad.fields;
}

TEST(OpenAiRequest, HandsTheTemplateWhatItExpects) {
  ApiRequest request = Good(Messages(R"([
      {"role":"developer","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
      {"role":"assistant","content":null,"refusal":null,"tool_calls":[
        {"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"x\": 1}"}}]},
      {"role":"tool","tool_call_id":"call_1","content":"2"}])"));
  const Json& document = std::get<ChatInput>(request.input).document;
  EXPECT_EQ(document["messages"][0].dump(), R"({"role":"system","content":"a\nb"})");
  EXPECT_EQ(document["messages"][1].dump(),
            R"({"role":"assistant","content":"","tool_calls":[{"id":"call_1","type":"function",)"
            R"("function":{"name":"f","arguments":{"x":1}}}]})");
  EXPECT_EQ(document["messages"][2]["tool_call_id"], "call_1");
  EXPECT_TRUE(document["tools"].is_null());
  EXPECT_EQ(document["add_generation_prompt"], true);
}

TEST(OpenAiRequest, TemplateVariablesCannotReplaceTheMessages) {
  EXPECT_EQ(ErrorOf(Chat(R"("chat_template_kwargs":{"messages":[]})")),
            "invalid_value chat_template_kwargs.messages");
  ApiRequest request = Good(Chat(R"("chat_template_kwargs":{"enable_thinking":false})"));
  EXPECT_EQ(std::get<ChatInput>(request.input).document["enable_thinking"], false);
}

TEST(RequestLimitsTest, EachAtItsLimitAndOneOver) {
  auto bias = [](int count) {
    Json biases = Json::object();
    RequestLimits limits = Limits();
    limits.vocabulary = 5000;
    for (int i = 0; i < count; ++i) biases[std::to_string(i)] = 1;
    return ErrorOf(ParseCompletion(
        Json({{"model", "m"}, {"prompt", "p"}, {"logit_bias", biases}}).dump(), limits));
  };
  EXPECT_EQ(bias(1024), "accepted");
  EXPECT_EQ(bias(1025), "invalid_value logit_bias");
  auto stop = [](size_t bytes) {
    return ErrorOf(Completion("\"stop\":\"" + std::string(bytes, 's') + "\""));
  };
  EXPECT_EQ(stop(256), "accepted");
  EXPECT_EQ(stop(257), "invalid_value stop");
  auto ids = [](int count) {
    return ErrorOf(Completion("\"stop_token_ids\":" + Json(std::vector<int>(count, 1)).dump()));
  };
  EXPECT_EQ(ids(128), "accepted");
  EXPECT_EQ(ids(129), "invalid_value stop_token_ids");
  auto messages = [](int count) {
    Json list = Json::array();
    for (int i = 0; i < count; ++i) list.push_back({{"role", "user"}, {"content", "x"}});
    return ErrorOf(Messages(list.dump()));
  };
  EXPECT_EQ(messages(2048), "accepted");
  EXPECT_EQ(messages(2049), "invalid_value messages");
  EXPECT_EQ(ErrorOf(Completion(R"("n":16)")), "accepted");
  EXPECT_EQ(ErrorOf(Completion(R"("logprobs":20)")), "accepted");
  EXPECT_EQ(ErrorOf(Completion(R"("prompt_logprobs":20)")), "accepted");
  EXPECT_EQ(ErrorOf(Completion(R"("stop":["a","b","c","d"])")), "accepted");
}

}  // namespace
}  // namespace ashlar
