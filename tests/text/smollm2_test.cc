// The tokenizer and chat template of a real model file, against Python. The file is named at
// configure time (ASHLAR_SMOLLM2); without it these tests skip.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "checkpoint/checkpoint.h"
#include "text/goldens.h"

namespace ashlar {
namespace {

class SmolLM2 : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(ASHLAR_SMOLLM2)) {
      GTEST_SKIP() << "no SmolLM2 file: configure with -DASHLAR_SMOLLM2=FILE.gguf (now \""
                   << ASHLAR_SMOLLM2 << "\")";
    }
    Result<Checkpoint> opened = OpenCheckpoint(ASHLAR_SMOLLM2);
    ASSERT_TRUE(opened.ok()) << Text(opened.problems());
    checkpoint_ = *std::move(opened);
    vocabulary_.model = Get<std::string>("model");
    vocabulary_.pre = Get<std::string>("pre");
    vocabulary_.tokens = Get<std::vector<std::string>>("tokens");
    vocabulary_.merges = Get<std::vector<std::string>>("merges");
    vocabulary_.token_types = Get<std::vector<int64_t>>("token_type");
    vocabulary_.bos = 1;
    vocabulary_.eos = 2;
    vocabulary_.add_bos = Get<bool>("add_bos_token");
    const auto start = std::chrono::steady_clock::now();
    auto made = Tokenizer::FromGguf(vocabulary_);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    ASSERT_TRUE(made.ok()) << Text(made.problems());
    tokenizer_ = *std::move(made);
    RecordProperty("load_ms", std::to_string(took.count()));
  }

  template <class T>
  const T& Get(const std::string& name) const {
    return std::get<T>(checkpoint_.gguf.at("tokenizer.ggml." + name));
  }

  Checkpoint checkpoint_;
  GgufVocabulary vocabulary_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_F(SmolLM2, IdsOfRandomTextsEqualPython) {
  const auto golden = ReadGolden("smollm2");
  ASSERT_GE(golden["texts"].size(), 1000u);
  for (size_t i = 0; i < golden["texts"].size(); ++i) {
    const std::string text = golden["texts"][i];
    const std::vector<int32_t> ids = *tokenizer_->Encode(text, false);
    ASSERT_EQ(ids, golden["ids"][i].get<std::vector<int32_t>>()) << text;
    const std::string index = std::to_string(i);
    const bool differs = golden["decoded_differs"].contains(index);
    ASSERT_EQ(*tokenizer_->Decode(ids, false),
              differs ? golden["decoded_differs"][index].get<std::string>() : text);
  }
}

TEST_F(SmolLM2, ChatPromptsAreRenderedAndEncodedAsInPython) {
  const auto golden = ReadGolden("smollm2");
  const auto& source = std::get<std::string>(checkpoint_.gguf.at("tokenizer.chat_template"));
  auto chat = ChatTemplate::Compile(source, vocabulary_.tokens[1], vocabulary_.tokens[2]);
  ASSERT_TRUE(chat.ok()) << Text(chat.problems());
  for (const auto& expected : golden["chats"]) {
    auto text = (*chat)->Render(expected["document"].dump(), 1 << 20);
    ASSERT_TRUE(text.ok()) << Text(text.problems());
    EXPECT_EQ(*text, expected["text"].get<std::string>());
    EXPECT_EQ(*tokenizer_->Encode(*text, false), expected["ids"].get<std::vector<int32_t>>());
  }
}

TEST_F(SmolLM2, StreamsAFoxInOneChunk) {
  const std::vector<int32_t> ids = *tokenizer_->Encode("\U0001F98A", false);
  ASSERT_GT(ids.size(), 1u);
  Decoder decoder(*tokenizer_, true);
  for (size_t i = 0; i + 1 < ids.size(); ++i) EXPECT_EQ(decoder.Push(ids[i]), "");
  EXPECT_EQ(decoder.Push(ids.back()), "\U0001F98A");
  EXPECT_EQ(decoder.Finish(), "");
}

}  // namespace
}  // namespace ashlar
