#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "text/convert.h"
#include "text/goldens.h"

namespace ashlar {
namespace {

TEST(Boundary, APanicReturnsAsAnError) {
  err_fault* error = nullptr;
  EXPECT_EQ(err_probe_panic(&error), ASHLAR_PANIC);
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(TakeProblem(error).Text(),
            "text library: internal panic: probe: no input may cause one; report this input");
  EXPECT_EQ(err_probe_panic(nullptr), ASHLAR_PANIC);
}

TEST(Boundary, FreesNothingForNull) {
  err_free(nullptr);
  tok_free(nullptr);
  tok_decoder_free(nullptr);
  tmpl_free(nullptr);
  gd_factory_free(nullptr);
  gd_free(nullptr);
  ashlar_buffer_free({});
}

TEST(Boundary, ThreadsShareATokenizerAndATemplate) {
  const auto golden = ReadGolden("byte_level");
  const auto& expected = golden["cases"][1]["ids"];
  auto tokenizer = Make(ByteLevelVocabulary("smollm"));
  auto chat = ChatTemplate::Compile(
      "{% for m in messages %}[{{ m.role }}] {{ m.content | tojson }}{% endfor %}", "", "");
  ASSERT_TRUE(chat.ok());
  std::atomic<int> wrong = 0;
  auto work = [&](int offset) {
    for (size_t n = 0; n < golden["texts"].size(); ++n) {
      const size_t i = (n + static_cast<size_t>(offset)) % golden["texts"].size();
      const std::string text = golden["texts"][i];
      const auto ids = tokenizer->Encode(text, false);
      if (!ids.ok() || *ids != expected[i].get<std::vector<int32_t>>()) ++wrong;
      Decoder decoder(*tokenizer, false);
      std::string decoded;
      for (int32_t id : *ids) decoded += decoder.Push(id);
      if (decoded + decoder.Finish() != text) ++wrong;
      const auto prompt = (*chat)->Render(R"({"messages":[{"role":"user","content":"é"}]})", 1000);
      if (!prompt.ok() || *prompt != "[user] \"é\"") ++wrong;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work, i * 13);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace ashlar
