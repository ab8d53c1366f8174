#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "text/goldens.h"

namespace ashlar {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string JsonRefusal(const std::string& text) {
  Result<std::unique_ptr<Tokenizer>> made = Tokenizer::FromJson(text);
  return made.ok() ? "accepted" : Text(made.problems());
}

void ExpectGolden(const Tokenizer& tokenizer, const nlohmann::ordered_json& golden,
                  const nlohmann::ordered_json& expected) {
  for (size_t i = 0; i < golden["texts"].size(); ++i) {
    const std::string text = golden["texts"][i];
    SCOPED_TRACE(text);
    Result<std::vector<int32_t>> ids = tokenizer.Encode(text, false);
    ASSERT_TRUE(ids.ok());
    EXPECT_EQ(*ids, expected["ids"][i].get<std::vector<int32_t>>());
    EXPECT_EQ(*tokenizer.Decode(*ids, false), expected["decoded"][i].get<std::string>());
  }
}

TEST(Tokenizer, ByteLevelIdsEqualPythonForEachPreTokenizer) {
  const auto golden = ReadGolden("byte_level");
  ASSERT_GE(golden["cases"].size(), 5u);
  for (const auto& expected : golden["cases"]) {
    SCOPED_TRACE(expected["pre"].get<std::string>());
    ExpectGolden(*Make(ByteLevelVocabulary(expected["pre"])), golden, expected);
  }
}

TEST(Tokenizer, SentencePieceIdsEqualPython) {
  const auto golden = ReadGolden("sentencepiece");
  ASSERT_EQ(golden["cases"].size(), 2u);
  for (const auto& expected : golden["cases"]) {
    OwnedVocabulary vocabulary = SentencePieceVocabulary();
    vocabulary.fields.add_space_prefix = expected["add_space_prefix"].get<bool>();
    ExpectGolden(*Make(vocabulary), golden, expected);
  }
}

TEST(Tokenizer, JsonFilesGiveTheSameIdsAsGguf) {
  const auto bytes = ReadGolden("byte_level");
  auto from_json = Tokenizer::FromJson(ReadTestFile("goldens/byte_level_tokenizer.json"));
  ASSERT_TRUE(from_json.ok()) << Text(from_json.problems());
  ASSERT_EQ(bytes["cases"][1]["pre"], "smollm");
  ExpectGolden(**from_json, bytes, bytes["cases"][1]);

  const auto pieces = ReadGolden("sentencepiece");
  from_json = Tokenizer::FromJson(ReadTestFile("goldens/sentencepiece_tokenizer.json"));
  ASSERT_TRUE(from_json.ok()) << Text(from_json.problems());
  ASSERT_EQ(pieces["cases"][0]["add_space_prefix"], true);
  ExpectGolden(**from_json, pieces, pieces["cases"][0]);
}

TEST(Tokenizer, AddsBosAndEosOnlyWhenAsked) {
  OwnedVocabulary vocabulary = SentencePieceVocabulary();
  vocabulary.fields.add_eos = true;
  auto tokenizer = Make(vocabulary);
  const std::vector<int32_t> bare = *tokenizer->Encode("the", false);
  std::vector<int32_t> framed = {1};
  framed.insert(framed.end(), bare.begin(), bare.end());
  framed.push_back(2);
  EXPECT_EQ(*tokenizer->Encode("the", true), framed);

  vocabulary.fields.add_eos.reset();  // what "llama" adds when the file does not say
  framed.pop_back();
  EXPECT_EQ(*Make(vocabulary)->Encode("the", true), framed);
  EXPECT_EQ(*Make(ByteLevelVocabulary("smollm"))->Encode("", true), std::vector<int32_t>());
}

TEST(Tokenizer, RecognisesSpecialTokensInTextEitherWay) {
  auto tokenizer = Make(ByteLevelVocabulary("smollm"));
  EXPECT_THAT(*tokenizer->Encode("<|im_start|>", false), ElementsAre(1));
  EXPECT_THAT(*tokenizer->Encode("<|im_start|>", true), ElementsAre(1));
  EXPECT_EQ(*tokenizer->Decode(std::vector<int32_t>{1}, true), "");
  EXPECT_EQ(*tokenizer->Decode(std::vector<int32_t>{1}, false), "<|im_start|>");
}

TEST(Tokenizer, ChatPromptThatWritesBosHasExactlyOne) {
  OwnedVocabulary vocabulary = SentencePieceVocabulary();
  vocabulary.fields.add_bos = true;
  auto tokenizer = Make(vocabulary);
  auto chat = ChatTemplate::Compile("{{ bos_token }}{{ messages[0].content }}", "<s>", "</s>");
  ASSERT_TRUE(chat.ok());
  auto prompt = (*chat)->Render(R"({"messages":[{"role":"user","content":"the fox"}]})", 100);
  ASSERT_TRUE(prompt.ok());
  std::vector<int32_t> ids = *tokenizer->Encode(*prompt, false);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 1), 1);
  EXPECT_EQ(ids.front(), 1);
}

TEST(Tokenizer, TokenBytesAreRawBytesInNoInnerAlphabet) {
  auto byte_level = Make(ByteLevelVocabulary("smollm"));
  EXPECT_EQ(byte_level->TokenBytes(*byte_level->TokenId("\u0120")), " ");
  EXPECT_EQ(byte_level->TokenBytes(*byte_level->TokenId("\u010a")), "\n");
  EXPECT_EQ(byte_level->TokenBytes(*byte_level->TokenId("\u00e9")), "\xe9");
  EXPECT_EQ(byte_level->TokenBytes(1), "<|im_start|>");
  auto pieces = Make(SentencePieceVocabulary());
  EXPECT_EQ(pieces->TokenBytes(*pieces->TokenId("<0xF0>")), "\xf0");
  EXPECT_EQ(pieces->TokenBytes(*pieces->TokenId("\u2581the")), " the");
}

TEST(Tokenizer, TokenBytesTogetherAreTheAnswersBytes) {
  const std::string answer = "a \U0001F98A and 日本, naïve\n";
  for (const auto& tokenizer : {Make(ByteLevelVocabulary("gpt-2")), Make([] {
                                  OwnedVocabulary vocabulary = SentencePieceVocabulary();
                                  vocabulary.fields.add_space_prefix = false;
                                  return vocabulary;
                                }())}) {
    std::string bytes;
    const std::vector<int32_t> ids = *tokenizer->Encode(answer, false);
    for (int32_t id : ids) bytes += tokenizer->TokenBytes(id);
    EXPECT_EQ(bytes, answer);
  }
}

TEST(Tokenizer, AnswersForIdsOutsideTheVocabulary) {
  auto tokenizer = Make(ByteLevelVocabulary("smollm"));
  for (int32_t id : {-1, tokenizer->vocabulary_size(), 1 << 30}) {
    EXPECT_EQ(tokenizer->TokenBytes(id), "");
    EXPECT_FALSE(tokenizer->IsSpecial(id));
    EXPECT_EQ(*tokenizer->Decode(std::vector<int32_t>{id}, true), "");
  }
  EXPECT_EQ(tokenizer->TokenId("no such piece"), std::nullopt);
  EXPECT_EQ(tokenizer->TokenId("\xff"), std::nullopt);
}

TEST(Tokenizer, RefusesTextThatIsNoUtf8) {
  auto tokenizer = Make(ByteLevelVocabulary("smollm"));
  auto ids = tokenizer->Encode("ab\xff", false);
  ASSERT_FALSE(ids.ok());
  EXPECT_EQ(Text(ids.problems()), "text: byte 2 is not valid UTF-8: UTF-8 text; change the text");
}

// TK-04.
TEST(Tokenizer, RefusesAnUnknownPreTokenizerByName) {
  EXPECT_THAT(Refusal(ByteLevelVocabulary("made-up")),
              AllOf(HasSubstr("tokenizer.ggml.pre: \"made-up\" is not a known pre-tokenizer"),
                    HasSubstr("supported are default, gpt-2"), HasSubstr("smollm"),
                    HasSubstr("llama-bpe"), HasSubstr("qwen2")));
}

TEST(Tokenizer, BuildsEachPreTokenizerThatItNames) {
  const std::string refusal = Refusal(ByteLevelVocabulary("made-up"));
  const std::string before = "supported are ";
  const size_t begin = refusal.find(before) + before.size();
  std::istringstream names(refusal.substr(begin, refusal.find(';', begin) - begin));
  int built = 0;
  for (std::string name; std::getline(names >> std::ws, name, ','); ++built) {
    SCOPED_TRACE(name);
    auto tokenizer = Make(ByteLevelVocabulary(name));
    const std::string text = "I'M 12345 héllo  wörld!\n\n日本 (x)\t";
    EXPECT_EQ(*tokenizer->Decode(*tokenizer->Encode(text, false), false), text);
  }
  EXPECT_GE(built, 20);
}

TEST(Tokenizer, EveryRefusalHasFourParts) {
  OwnedVocabulary vocabulary = ByteLevelVocabulary("smollm");
  vocabulary.merges[5] = std::string(100000, 'x');
  auto from_gguf = Tokenizer::FromGguf(vocabulary.View());
  auto from_json = Tokenizer::FromJson("{");
  for (const Problem& problem : {from_gguf.problems()[0], from_json.problems()[0]}) {
    EXPECT_THAT(
        (std::vector<std::string>{problem.place, problem.found, problem.allowed, problem.next}),
        testing::Each(testing::Not(testing::IsEmpty())));
    EXPECT_LT(problem.Text().size(), 2000u);
  }
}

TEST(Tokenizer, RefusesAnUnknownModelByName) {
  OwnedVocabulary vocabulary = ByteLevelVocabulary("gpt-2");
  vocabulary.fields.model = "rwkv";
  EXPECT_THAT(Refusal(vocabulary), HasSubstr("tokenizer.ggml.model: \"rwkv\" is not a known"));
}

// TK-05, here and in tokenizer.json.
TEST(Tokenizer, RefusesARepeatedMergeRuleWithItsIndex) {
  OwnedVocabulary vocabulary = ByteLevelVocabulary("smollm");
  vocabulary.merges[20] = vocabulary.merges[7];
  EXPECT_THAT(Refusal(vocabulary), AllOf(HasSubstr("tokenizer.ggml.merges[20]"),
                                         HasSubstr("repeats the rule of index 7")));
}

TEST(Tokenizer, RefusesMergeRulesWithoutTokens) {
  OwnedVocabulary vocabulary = ByteLevelVocabulary("smollm");
  vocabulary.merges[3] = "zzzzzz b";
  EXPECT_THAT(Refusal(vocabulary), AllOf(HasSubstr("tokenizer.ggml.merges[3]"),
                                         HasSubstr("\"zzzzzz\" is not in the vocabulary")));
  vocabulary.merges[3] = "nospace";
  EXPECT_THAT(Refusal(vocabulary), HasSubstr("merges[3]: \"nospace\" is no merge rule"));
}

TEST(Tokenizer, RefusesHolesAndRepeatedTokensWithTheirId) {
  OwnedVocabulary vocabulary = ByteLevelVocabulary("smollm");
  vocabulary.tokens[11] = "";
  EXPECT_THAT(Refusal(vocabulary), HasSubstr("tokenizer.ggml.tokens: id 11 has no token"));
  vocabulary.tokens[11] = vocabulary.tokens[10];
  EXPECT_THAT(Refusal(vocabulary), HasSubstr("stands at id 10 and again at id 11"));
}

TEST(Tokenizer, RefusesArraysThatDoNotMatch) {
  OwnedVocabulary vocabulary = SentencePieceVocabulary();
  vocabulary.scores.pop_back();
  EXPECT_THAT(Refusal(vocabulary), HasSubstr("tokenizer.ggml.scores"));
  vocabulary.scores.clear();
  EXPECT_THAT(Refusal(vocabulary), HasSubstr("has neither merges nor scores"));
  vocabulary = SentencePieceVocabulary();
  vocabulary.fields.bos = 1 << 20;
  EXPECT_THAT(Refusal(vocabulary), HasSubstr("tokenizer.ggml.bos_token_id: 1048576"));
  OwnedVocabulary empty;
  empty.fields.model = "gpt2";
  EXPECT_THAT(Refusal(empty), HasSubstr("holds no token"));
}

constexpr const char* kSmallJson = R"({"model": {"type": "BPE",
"vocab": {"a": 0, "b": 1, "ab": 2, "c": 3, "bc": 4},
"merges": [
"a b",
"b c"
]}, "added_tokens": [], "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false,
"trim_offsets": true, "use_regex": true}, "decoder": {"type": "ByteLevel",
"add_prefix_space": true, "trim_offsets": true, "use_regex": true}})";

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  Check(text.find(from) != std::string::npos, from);
  return text.replace(text.find(from), from.size(), to);
}

TEST(TokenizerJson, RefusesARepeatedMergeRuleWithItsLine) {
  ASSERT_EQ(JsonRefusal(kSmallJson), "accepted");
  EXPECT_THAT(JsonRefusal(Replaced(kSmallJson, "\"b c\"", "\"a b\"")),
              HasSubstr("tokenizer.json:5 model.merges[1]: \"a b\" repeats the rule of index 0"));
  EXPECT_THAT(JsonRefusal(Replaced(kSmallJson, "\"b c\"", "[\"a\",\"b\"]")),
              HasSubstr("tokenizer.json:5 model.merges[1]"));
}

TEST(TokenizerJson, RefusesHolesAndSharedIds) {
  EXPECT_THAT(JsonRefusal(Replaced(kSmallJson, "\"bc\": 4", "\"bc\": 5")),
              HasSubstr("id 4 has no token"));
  EXPECT_THAT(JsonRefusal(Replaced(kSmallJson, "\"c\": 3", "\"c\": 2")),
              HasSubstr("\"ab\" and \"c\" share id 2"));
  EXPECT_THAT(JsonRefusal(Replaced(kSmallJson, "\"c\": 3", "\"a\": 3")),
              HasSubstr("token \"a\" stands at id 0 and again at id 3"));
  EXPECT_THAT(JsonRefusal(Replaced(kSmallJson, "\"c\": 3", "\"c\": 4000000000")),
              HasSubstr("id 3 has no token"));
}

TEST(TokenizerJson, RefusesUnknownComponentsByName) {
  EXPECT_THAT(JsonRefusal(Replaced(kSmallJson, "\"type\": \"ByteLevel\"", "\"type\": \"MadeUp\"")),
              AllOf(HasSubstr("tokenizer.json pre_tokenizer: type \"MadeUp\" is not supported"),
                    HasSubstr("ByteLevel, CharDelimiterSplit")));
}

TEST(TokenizerJson, RefusesAPostProcessorThatAddsIdsWithoutTokens) {
  const std::string post = R"("post_processor": {"type": "TemplateProcessing", "single":
      [{"SpecialToken": {"id": "x", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
      "pair": [], "special_tokens": {"x": {"id": "x", "ids": [99], "tokens": ["x"]}}}, )";
  EXPECT_THAT(JsonRefusal(Replaced(kSmallJson, "\"decoder\"", post + "\"decoder\"")),
              HasSubstr("tokenizer.json post_processor: adds id 99, which has no token: 0 to 4"));
}

TEST(TokenizerJson, RefusesTextThatIsNoTokenizer) {
  EXPECT_THAT(JsonRefusal(""), HasSubstr("tokenizer.json: EOF"));
  EXPECT_THAT(JsonRefusal("{}"), HasSubstr("missing field `model`"));
  EXPECT_THAT(JsonRefusal("{\"model\": {}}"), HasSubstr("tokenizer.json"));
  EXPECT_THAT(JsonRefusal(std::string(100000, '[')), HasSubstr("tokenizer.json"));
}

}  // namespace
}  // namespace ashlar
