#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/convert.h"
#include "text/goldens.h"

namespace ashlar {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kNoMessages = R"({"messages":[]})";

std::string Render(const std::string& source, const std::string& document = kNoMessages) {
  auto chat = ChatTemplate::Compile(source, "<s>", "</s>");
  if (!chat.ok()) return "compile: " + Text(chat.problems());
  auto text = (*chat)->Render(document, 1 << 20);
  return text.ok() ? *text : Text(text.problems());
}

// Renders at a fixed time, which the C++ face takes from the clock.
std::string RenderAt(int64_t now, const std::string& source, const std::string& document,
                     const std::string& bos, const std::string& eos) {
  tmpl_handle* handle = nullptr;
  err_fault* error = nullptr;
  if (tmpl_compile(Borrow(source), Borrow(bos), Borrow(eos), &handle, &error) != ASHLAR_OK) {
    return "compile: " + TakeProblem(error).Text();
  }
  ashlar_buffer text{};
  const int status = tmpl_render(handle, Borrow(document), 1 << 20, 10000, now, &text, &error);
  tmpl_free(handle);
  if (status == ASHLAR_OK) return TakeString(text);
  const Problem problem = TakeProblem(error);
  return problem.place + ": " + problem.found;
}

TEST(ChatTemplate, RendersAsJinja2DoesWithHuggingFacesSettings) {
  const auto golden = ReadGolden("templates");
  int compared = 0;
  for (const auto& expected : golden["cases"]) {
    SCOPED_TRACE(expected["name"].get<std::string>());
    std::string source;
    nlohmann::ordered_json document;
    if (expected.contains("source")) {
      source = expected["source"];
      document = {{"messages", nlohmann::ordered_json::array()}, {"data", golden["data"]}};
    } else {
      source = ReadTestFile("templates/" + expected["template"].get<std::string>() + ".jinja");
      document = expected["document"];
    }
    const std::string text =
        RenderAt(golden["now"], source, document.dump(), golden["bos"], golden["eos"]);
    if (expected.contains("raised")) {
      EXPECT_EQ(text, "messages: the chat template refuses them: " +
                          expected["raised"].get<std::string>());
    } else {
      EXPECT_EQ(text, expected["text"].get<std::string>());
    }
    ++compared;
  }
  EXPECT_GE(compared, 100);
}

TEST(ChatTemplate, TellsARefusalFromAFailure) {
  EXPECT_EQ(
      Render("a\n{{ raise_exception('roles must alternate') }}"),
      "messages: the chat template refuses them: roles must alternate: a conversation that it "
      "takes; change the messages");
  EXPECT_THAT(Render("a\n\n{{ messages.x.y }}"), StartsWith("chat template:3: undefined value"));
  EXPECT_THAT(Render("{% macro m() %}\n{{ none + 1 }}{% endmacro %}{{ m() }}"),
              StartsWith("chat template:2: "));
}

TEST(ChatTemplate, RefusesASourceThatIsNoTemplateWithItsLine) {
  EXPECT_THAT(Render("a\n{% if %}"), StartsWith("compile: chat template:2: syntax error"));
  EXPECT_THAT(Render("{% include 'x' %}"), HasSubstr("unknown statement include"));
  EXPECT_THAT(Render("\xff"), HasSubstr("byte 0 is not valid UTF-8"));
}

TEST(ChatTemplate, RefusesVariablesThatAreNoObject) {
  EXPECT_THAT(Render("a", "[]"), StartsWith("template variables: not an object"));
  EXPECT_THAT(Render("a", "{\"a\":"), StartsWith("template variables: EOF"));
}

TEST(ChatTemplate, SetsWhatHuggingFaceSets) {
  EXPECT_EQ(Render("{{ bos_token }}{{ eos_token }}{{ tools is none }}{{ add_generation_prompt }}"),
            "<s></s>TrueFalse");
  EXPECT_EQ(Render("{{ eos_token }}", R"({"messages":[],"eos_token":"x"})"), "x");
}

TEST(ChatTemplate, KeepsCallIdNameAndArgumentsOfEarlierTurns) {
  const std::string document = R"({"messages":[
    {"role":"user","content":"weather?"},
    {"role":"assistant","content":null,"tool_calls":[{"id":"call_7","type":"function",
      "function":{"name":"get_weather","arguments":{"place":"Zürich"}}}]},
    {"role":"tool","tool_call_id":"call_7","name":"get_weather","content":"21"},
    {"role":"user","content":"and tomorrow?"}],"add_generation_prompt":true})";
  EXPECT_THAT(
      Render(ReadTestFile("templates/tools_thinking.jinja"), document),
      AllOf(HasSubstr("{\"name\": \"get_weather\", \"arguments\": {\"place\": \"Zürich\"}}"),
            HasSubstr("<reply id=\"call_7\">\n21\n</reply>")));
}

TEST(ChatTemplate, KeepsTheOrderOfKeys) {
  EXPECT_EQ(Render("{{ x | tojson }}", R"({"x":{"z":1,"a":2,"m":3}})"),
            R"({"z": 1, "a": 2, "m": 3})");
}

TEST(ChatTemplate, ShowsTheClock) {
  EXPECT_EQ(RenderAt(951782399, "{{ strftime_now('%d %b %Y %H:%M:%S %j') }}", "{}", "", ""),
            "28 Feb 2000 23:59:59 059");
  EXPECT_EQ(RenderAt(951868800, "{{ strftime_now('%F %a') }}", "{}", "", ""), "2000-03-01 Wed");
  EXPECT_THAT(Render("{{ strftime_now('%Q') }}"), HasSubstr("strftime_now: %Q is not supported"));
  EXPECT_THAT(Render("{{ strftime_now('%Y') | length }}"), "4");
}

}  // namespace
}  // namespace ashlar
