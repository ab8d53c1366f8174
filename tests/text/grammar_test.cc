#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/convert.h"
#include "text/goldens.h"

namespace ashlar {
namespace {

using testing::HasSubstr;

constexpr uint32_t kEnd = 0;

// One grammar over the small byte-level vocabulary.
class Grammar : public testing::Test {
 protected:
  void SetUp() override {
    tokenizer_ = Make(ByteLevelVocabulary("gpt-2"));
    ASSERT_EQ(gd_factory_new(tokenizer_->handle(), kEnd, &factory_, nullptr), ASHLAR_OK);
  }
  void TearDown() override {
    gd_free(grammar_);
    gd_factory_free(factory_);
  }

  std::string Compile(const std::string& kind, const std::string& text) {
    err_fault* error = nullptr;
    const int status = gd_compile(factory_, Borrow(kind), Borrow(text), &grammar_, &error);
    return status == ASHLAR_OK ? "" : TakeProblem(error).Text();
  }

  size_t words() const { return (tok_size(tokenizer_->handle()) + 31) / 32; }

  bool Allows(uint32_t id) {
    std::vector<uint32_t> mask(words() + 1, ~0u);
    EXPECT_EQ(gd_mask(grammar_, mask.data(), mask.size(), nullptr), ASHLAR_OK);
    EXPECT_EQ(mask.back(), 0u);
    return (mask[id / 32] >> (id % 32)) & 1;
  }

  uint32_t Id(const std::string& piece) {
    return static_cast<uint32_t>(*tokenizer_->TokenId(piece));
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  gd_factory* factory_ = nullptr;
  gd_grammar* grammar_ = nullptr;
};

TEST_F(Grammar, RegexAllowsOnlyWhatMayFollow) {
  ASSERT_EQ(Compile("regex", "[ab]c"), "");
  EXPECT_TRUE(Allows(Id("a")));
  EXPECT_FALSE(Allows(Id("c")));
  EXPECT_FALSE(Allows(kEnd));
  ASSERT_EQ(gd_accept(grammar_, Id("a"), nullptr), ASHLAR_OK);
  EXPECT_TRUE(Allows(Id("c")));
  EXPECT_FALSE(Allows(Id("a")));
}

TEST_F(Grammar, RollbackReturnsToTheStateBefore) {
  ASSERT_EQ(Compile("regex", "[ab]c"), "");
  ASSERT_EQ(gd_accept(grammar_, Id("a"), nullptr), ASHLAR_OK);
  ASSERT_EQ(gd_rollback(grammar_, 1, nullptr), ASHLAR_OK);
  EXPECT_TRUE(Allows(Id("b")));
}

TEST_F(Grammar, StopsAtTheEndAndThenAllowsTheEndAlone) {
  ASSERT_EQ(Compile("regex", "ab?"), "");
  ASSERT_EQ(gd_accept(grammar_, Id("a"), nullptr), ASHLAR_OK);
  EXPECT_FALSE(gd_is_stopped(grammar_));
  EXPECT_TRUE(Allows(kEnd));
  ASSERT_EQ(gd_accept(grammar_, Id("b"), nullptr), ASHLAR_OK);
  EXPECT_TRUE(gd_is_stopped(grammar_));
  EXPECT_TRUE(Allows(kEnd));
  EXPECT_FALSE(Allows(Id("b")));
}

TEST_F(Grammar, ATokenThatIsNotAllowedIsAnError) {
  ASSERT_EQ(Compile("regex", "a"), "");
  err_fault* error = nullptr;
  EXPECT_NE(gd_accept(grammar_, Id("z"), &error), ASHLAR_OK);
  ASSERT_NE(error, nullptr);
  err_free(error);
}

TEST_F(Grammar, JsonSchemaForcesItsKeys) {
  ASSERT_EQ(Compile("json_schema",
                    R"({"type":"object","properties":{"name":{"type":"string"}},
                        "required":["name"],"additionalProperties":false,
                        "x-guidance":{"whitespace_flexible":false}})"),
            "");
  ASSERT_EQ(gd_accept(grammar_, Id("{"), nullptr), ASHLAR_OK);
  ashlar_buffer forced{};
  ASSERT_EQ(gd_forced(grammar_, &forced, nullptr), ASHLAR_OK);
  std::string text;
  for (size_t i = 0; i < forced.size / sizeof(uint32_t); ++i) {
    text += tokenizer_->TokenBytes(static_cast<const int32_t*>(forced.data)[i]);
  }
  ashlar_buffer_free(forced);
  EXPECT_THAT(text, HasSubstr("\"name"));
}

TEST_F(Grammar, LarkCompiles) {
  ASSERT_EQ(Compile("lark", "start: \"x\" | \"y\""), "");
  EXPECT_TRUE(Allows(Id("x")));
  EXPECT_FALSE(Allows(Id("a")));
}

TEST_F(Grammar, RefusesWhatItCannotCompile) {
  EXPECT_THAT(Compile("regex", "("), HasSubstr("regex: "));
  EXPECT_THAT(Compile("json_schema", "{"), HasSubstr("json_schema: EOF"));
  EXPECT_THAT(Compile("json_schema", R"({"type":"made-up"})"), HasSubstr("json_schema: "));
  EXPECT_THAT(Compile("prolog", "x"), HasSubstr("json_schema, regex or lark"));
  EXPECT_THAT(Compile("regex", std::string(70000, 'a')), HasSubstr("at most 65536 bytes"));
}

TEST_F(Grammar, RefusesAMaskThatIsTooShort) {
  ASSERT_EQ(Compile("regex", "a"), "");
  std::vector<uint32_t> mask(words() - 1);
  EXPECT_EQ(gd_mask(grammar_, mask.data(), mask.size(), nullptr), ASHLAR_INPUT);
  EXPECT_EQ(gd_mask(grammar_, nullptr, 0, nullptr), ASHLAR_INPUT);
}

TEST_F(Grammar, RefusesAnEndThatIsNoToken) {
  gd_factory* other = nullptr;
  EXPECT_EQ(gd_factory_new(tokenizer_->handle(), 1 << 20, &other, nullptr), ASHLAR_INPUT);
}

}  // namespace
}  // namespace ashlar
