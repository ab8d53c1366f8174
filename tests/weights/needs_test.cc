#include "weights/needs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/formats.h"
#include "support/weights_model.h"

namespace ashlar {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing_support::TinyConfig;
using testing_support::TinySafetensors;
using testing_support::TinyTensors;

class Needs : public testing::Test {
 protected:
  Needs() : needs_(NeedsOf(config_, Checkpoint::Format::kSafetensors)) {}

  Problems Compare(const std::map<std::string, testing_support::TinyTensor>& tensors) {
    bytes_ = TinySafetensors(tensors);
    Checkpoint checkpoint;
    checkpoint.path = "/models/tiny";
    checkpoint.format = Checkpoint::Format::kSafetensors;
    checkpoint.files.push_back(
        MappedFile::Builtin("m.safetensors", std::as_bytes(std::span(bytes_))));
    checkpoint.tensors = ReadSafetensors(checkpoint.files[0], 0).value();
    return CompareTensors(checkpoint, config_, needs_);
  }

  ModelConfig config_ = TinyConfig();
  ModelNeeds needs_;
  std::string bytes_;
};

TEST_F(Needs, AreMetByWhatTheyAskFor) { EXPECT_THAT(Compare(TinyTensors(needs_)), IsEmpty()); }

TEST_F(Needs, GrowWithWhatTheModelHas) {
  size_t plain = needs_.all().size();
  EXPECT_EQ(plain, 3 + 2 * 9u);
  config_.qkv_bias = config_.output_bias = config_.qk_norm = config_.sandwich_norms = true;
  EXPECT_EQ(NeedsOf(config_, Checkpoint::Format::kSafetensors).all().size(), plain + 2 * 8);
  config_.tied_head = true;
  EXPECT_EQ(NeedsOf(config_, Checkpoint::Format::kGguf).all().size(), plain + 2 * 8 - 1);
}

TEST_F(Needs, ReportEveryMistakeAtOnce) {
  auto tensors = TinyTensors(needs_);
  tensors.erase("model.norm.weight");
  tensors["model.layers.1.mlp.up_proj.weight"].shape = {8, 6};
  tensors["model.layers.2.mlp.up_proj.weight"] = {{1}, {0}};
  Problems problems = Compare(tensors);
  ASSERT_THAT(problems, SizeIs(3));
  EXPECT_EQ(problems[0].Text(),
            "/models/tiny tensor model.norm.weight: is missing: a tensor of shape [8]; fetch the "
            "weights and their config again");
  EXPECT_THAT(problems[1].Text(),
              testing::MatchesRegex("m.safetensors tensor model.layers.1.mlp.up_proj.weight bytes "
                                    "[0-9]+\\.\\.[0-9]+: shape \\[8, 6\\]: \\[6, 8\\], as the "
                                    "config says; the weights .*"));
  EXPECT_THAT(problems[2].Text(), HasSubstr("tensor model.layers.2.mlp.up_proj.weight bytes "));
  EXPECT_THAT(problems[2].Text(),
              HasSubstr("is no part of architecture llama with 2 layers: the tensors of that"));
}

TEST_F(Needs, GuessARenamedTensor) {
  auto tensors = TinyTensors(needs_);
  auto norm = tensors.extract("model.norm.weight");
  norm.key() = "model.norm.weights";
  tensors.insert(std::move(norm));
  EXPECT_THAT(Compare(tensors)[0].next, HasSubstr("model.norm.weights"));
}

TEST_F(Needs, SkipNamesThatHoldNothingNeeded) {
  auto tensors = TinyTensors(needs_);
  tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = {{1}, {0}};
  EXPECT_THAT(Compare(tensors), IsEmpty());
}

TEST_F(Needs, TakeASecondCopyOfATiedHead) {
  auto tensors = TinyTensors(needs_);
  config_.tied_head = true;
  needs_ = NeedsOf(config_, Checkpoint::Format::kSafetensors);
  ASSERT_TRUE(tensors.contains("lm_head.weight"));
  EXPECT_THAT(Compare(tensors), IsEmpty());
}

TEST_F(Needs, CutALongReport) {
  std::map<std::string, testing_support::TinyTensor> others;
  others["x"] = {{1}, {0}};
  Problems problems = Compare(others);
  EXPECT_THAT(problems, SizeIs(21));
  EXPECT_EQ(problems.back().found, "2 more such tensors");
}

TEST_F(Needs, RefuseAQuantizedNorm) {
  Checkpoint checkpoint;
  checkpoint.format = Checkpoint::Format::kGguf;
  config_.hidden = 32;
  needs_ = NeedsOf(config_, checkpoint.format);
  bytes_ = testing_support::GgufWriter()
               .Tensor("output_norm.weight", {32}, testing_support::GgufWriter::kQ8_0,
                       std::string(34, 'q'))
               .Bytes();
  checkpoint = ReadGguf(MappedFile::Builtin("m.gguf", std::as_bytes(std::span(bytes_)))).value();
  EXPECT_THAT(Text(CompareTensors(checkpoint, config_, needs_)),
              HasSubstr("a norm or bias of q8_0: float32, float16 or bfloat16"));
}

}  // namespace
}  // namespace ashlar
