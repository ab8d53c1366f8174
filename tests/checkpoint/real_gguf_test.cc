// SmolLM2-135M-Instruct in Q4_1, when the build is told where it is (ASHLAR_SMOLLM2).
#include <gtest/gtest.h>

#include <map>

#include "base/sha256.h"
#include "checkpoint/checkpoint.h"

namespace ashlar {
namespace {

TEST(RealGguf, SmolLm2HasTheTensorsAndTokenizerThatItIsKnownFor) {
  std::string path = ASHLAR_SMOLLM2;
  if (path.empty()) GTEST_SKIP() << "configure with -DASHLAR_SMOLLM2=FILE to read a real GGUF";
  Result<Checkpoint> opened = OpenCheckpoint(path);
  ASSERT_TRUE(opened.ok()) << Text(opened.problems());
  std::span<const std::byte> bytes = opened->files[0].bytes();
  std::string sha = Sha256Hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  ASSERT_EQ(sha.substr(0, 12), "b179c9523d0e") << "another file than this test speaks of";
  std::map<DType, int> count;
  for (const TensorInfo& tensor : opened->tensors) ++count[tensor.dtype];
  EXPECT_EQ(count,
            (std::map<DType, int>{{DType::kF32, 61}, {DType::kQ4_1, 210}, {DType::kQ8_0, 1}}));
  EXPECT_EQ(opened->Find("token_embd.weight")->shape, (std::vector<int64_t>{49152, 576}));
  EXPECT_EQ(std::get<std::string>(opened->gguf.at("tokenizer.ggml.pre")), "smollm");
  EXPECT_EQ(std::get<std::vector<std::string>>(opened->gguf.at("tokenizer.ggml.tokens")).size(),
            49152u);
  EXPECT_EQ(std::get<uint64_t>(opened->gguf.at("tokenizer.ggml.eos_token_id")), 2u);
}

}  // namespace
}  // namespace ashlar
