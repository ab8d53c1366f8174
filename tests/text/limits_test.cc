#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/convert.h"
#include "text/goldens.h"
#include "text/sanitizer.h"

namespace ashlar {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kSteps = "chat template: takes more than 1000000 steps";

std::string Render(const std::string& source, int64_t max_output_bytes = 1 << 20) {
  auto chat = ChatTemplate::Compile(source, "<s>", "</s>");
  if (!chat.ok()) return "compile: " + Text(chat.problems());
  auto text = (*chat)->Render("{}", max_output_bytes);
  return text.ok() ? *text : Text(text.problems());
}

// Where another limit than that of time is the claim, on however slow a machine.
std::string RenderInAnyTime(const std::string& source) {
  const UninstrumentedCall call;
  tmpl_handle* handle = nullptr;
  ashlar_buffer text{};
  err_fault* error = nullptr;
  if (tmpl_compile(Borrow(source), {}, {}, &handle, &error) != ASHLAR_OK) {
    return TakeProblem(error).Text();
  }
  const int code = tmpl_render(handle, Borrow("{}"), 1 << 20, 600'000, 0, &text, &error);
  tmpl_free(handle);
  return code == ASHLAR_OK ? TakeString(text) : TakeProblem(error).Text();
}

// An action repeated in two nested loops.
std::string Repeated(const std::string& action, int outer, int inner) {
  return "{% set ns = namespace(s=[], t=[]) %}{% for i in range(" + std::to_string(outer) +
         ") %}{% for j in range(" + std::to_string(inner) + ") %}" + action +
         "{% endfor %}{% endfor %}";
}

// TK-08, from here on. A template sent in a request is refused: tests/serve/bad_bodies_test.cc.
TEST(TemplateLimits, StopNestedLoops) {
  EXPECT_THAT(RenderInAnyTime(Repeated("", 10000, 10000)), StartsWith(kSteps));
  EXPECT_THAT(RenderInAnyTime(Repeated("{% set ns.s = i %}", 10000, 10000)), StartsWith(kSteps));
}

TEST(TemplateLimits, CountThreeStepsForAnEmptyTurnOfALoop) {
  EXPECT_EQ(RenderInAnyTime(Repeated("", 10, 33000)), "");
  EXPECT_THAT(RenderInAnyTime(Repeated("", 10, 34000)), StartsWith(kSteps));
}

TEST(TemplateLimits, StopADoublingString) {
  EXPECT_THAT(RenderInAnyTime("{% set ns = namespace(s='aaaaaaaaaa') %}{% for i in range(40) %}"
                              "{% set ns.s = ns.s ~ ns.s %}{% endfor %}"),
              StartsWith(kSteps));
  EXPECT_THAT(RenderInAnyTime("{{ 'a' * 1000000000 }}"), StartsWith(kSteps));
  EXPECT_THAT(RenderInAnyTime("{{ '%1000000000d' | format(3) }}"), StartsWith(kSteps));
  EXPECT_THAT(RenderInAnyTime("{{ 'x' | replace('', 'y' * 100000) | replace('y', 'z' * 100000) }}"),
              StartsWith(kSteps));
}

TEST(TemplateLimits, StopGrowingLists) {
  EXPECT_THAT(RenderInAnyTime("{{ [1] * 1000000000 }}"), StartsWith("chat template"));
  EXPECT_THAT(
      RenderInAnyTime("{% for i in range(90000) %}{% set x = range(100000) | list %}{% endfor %}"),
      StartsWith(kSteps));
  EXPECT_THAT(RenderInAnyTime("{{ range(1000000000) }}"), HasSubstr("range has too many elements"));
}

TEST(TemplateLimits, StopDeepCalls) {
  EXPECT_THAT(RenderInAnyTime("{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}"),
              HasSubstr("recursion limit exceeded"));
  EXPECT_EQ(RenderInAnyTime("{% macro f(n) %}{% if n %}{{ f(n - 1) }}{% endif %}x{% endmacro %}"
                            "{{ f(40) | length }}"),
            "41");
}

TEST(TemplateLimits, StopOutput) {
  EXPECT_EQ(Render("{{ 'a' * 100 }}", 100), std::string(100, 'a'));
  EXPECT_THAT(Render("{{ 'a' * 101 }}", 100),
              StartsWith("chat template: writes more than 100 bytes"));
  EXPECT_THAT(Render("a", 0), StartsWith("chat template: writes more than 0 bytes"));
  EXPECT_THAT(Render("a", -1), StartsWith("chat template: writes more than 0 bytes"));
}

// Each walks its value by recursion, about 100,000 levels deep.
TEST(TemplateLimits, DeepValuesEndInTextOrRefusal) {
  const std::string nest = Repeated("{% set ns.s = [ns.s] %}", 2, 45000);
  const std::string twice = Repeated("{% set ns.s = [ns.s] %}{% set ns.t = [ns.t] %}", 2, 25000);
  EXPECT_EQ(RenderInAnyTime(nest + "done"), "done");
  EXPECT_EQ(RenderInAnyTime(nest + "{{ ns.s }}").size(), 180002u);
  EXPECT_EQ(RenderInAnyTime(nest + "{{ ns.s | string | length }}"), "180002");
  EXPECT_EQ(RenderInAnyTime(twice + "{{ ns.s == ns.t }}"), "True");
  EXPECT_EQ(RenderInAnyTime(twice + "{{ [ns.s, ns.t] | unique | list | length }}"), "1");
  EXPECT_THAT(RenderInAnyTime(nest + "{{ ns.s | tojson }}"),
              HasSubstr("nests values deeper than 200"));
  EXPECT_THAT(RenderInAnyTime(nest + "{{ ns.s | pprint }}"), HasSubstr("pprint"));
}

TEST(TemplateLimits, StopAtTheirTimeOfProcessor) {
  const std::string source = Repeated("{{ i }}", 400, 400);
  tmpl_handle* handle = nullptr;
  ASSERT_EQ(tmpl_compile(Borrow(source), {}, {}, &handle, nullptr), ASHLAR_OK);
  ashlar_buffer text{};
  err_fault* error = nullptr;
  ASSERT_EQ(tmpl_render(handle, Borrow("{}"), 1 << 24, 1, 0, &text, &error), ASHLAR_LIMIT);
  EXPECT_THAT(TakeProblem(error).Text(), StartsWith("chat template: takes more than 1 ms"));
  EXPECT_EQ(tmpl_render(handle, Borrow("{}"), 1 << 24, 10000, 0, &text, nullptr), ASHLAR_OK);
  ashlar_buffer_free(text);
  tmpl_free(handle);
}

TEST(TemplateLimits, RefuseASourceThatIsTooLong) {
  EXPECT_THAT(Render(std::string((1 << 20) + 1, 'a')), HasSubstr("at most 1048576 bytes"));
}

}  // namespace
}  // namespace ashlar
