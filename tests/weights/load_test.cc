#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/checkpoint_files.h"
#include "support/weights_model.h"
#include "weights/weights.h"

namespace ashlar {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::TempFolder;
using testing_support::TinyConfig;
using testing_support::TinyGguf;
using testing_support::TinySafetensors;
using testing_support::TinyTensors;

class Load : public testing::Test {
 protected:
  Load() {
    const Plugin* plugin =
        Plugin::Load(ASHLAR_BUILD_DIR "/lib/ashlar/libashlar_reference.so").value();
    device_ = Device::Open(*plugin, {}).value();
  }

  Checkpoint Safetensors() {
    tensors_ = TinyTensors(NeedsOf(config_, Checkpoint::Format::kSafetensors));
    folder_.Write("config.json", "{}");
    folder_.Write("model.safetensors", TinySafetensors(tensors_));
    return OpenCheckpoint(folder_.path()).value();
  }
  Checkpoint Gguf() {
    tensors_ = TinyTensors(NeedsOf(config_, Checkpoint::Format::kGguf));
    return OpenCheckpoint(folder_.Write("m.gguf", TinyGguf(tensors_))).value();
  }

  const std::vector<float>& Values(const std::string& name) { return tensors_.at(name).values; }

  std::vector<float> Read(const Tensor& tensor) {
    std::vector<float> values(static_cast<size_t>(tensor.shape.at(0)));
    EXPECT_TRUE(device_->CopyOut(std::as_writable_bytes(std::span(values)), tensor.data).ok());
    return values;
  }

  // The matrix row by row, as the plugin sees it: the product with each unit vector.
  std::vector<float> Read(const Weight& weight) {
    const int64_t rows = weight.rows(), cols = weight.cols();
    std::vector<float> unit(static_cast<size_t>(cols * cols)),
        out(static_cast<size_t>(rows * cols));
    for (int64_t i = 0; i < cols; ++i) unit[static_cast<size_t>(i * cols + i)] = 1;
    Status status = device_->Matmul(Tensor::Of(out.data(), DType::kF32, {cols, rows}),
                                    Tensor::Of(unit.data(), DType::kF32, {cols, cols}), weight);
    EXPECT_TRUE(status.ok());
    std::vector<float> values;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < cols; ++c) values.push_back(out[static_cast<size_t>(c * rows + r)]);
    }
    return values;
  }

  std::vector<float> Joined(std::initializer_list<std::string> names) {
    std::vector<float> all;
    for (const std::string& name : names) {
      const std::vector<float>& values = Values(name);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  TempFolder folder_;
  ModelConfig config_ = TinyConfig();
  std::map<std::string, testing_support::TinyTensor> tensors_;
  std::unique_ptr<Device> device_;
};

TEST_F(Load, StacksTheProjectionsInTheirOrder) {
  Checkpoint checkpoint = Safetensors();
  ModelWeights weights = LoadWeights(checkpoint, config_, *device_, {}).value();
  ASSERT_EQ(weights.layers.size(), 2u);
  std::string layer = "model.layers.1.";
  EXPECT_EQ(Read(weights.layers[1].qkv),
            Joined({layer + "self_attn.q_proj.weight", layer + "self_attn.k_proj.weight",
                    layer + "self_attn.v_proj.weight"}));
  EXPECT_EQ(Read(weights.layers[1].gate_up),
            Joined({layer + "mlp.gate_proj.weight", layer + "mlp.up_proj.weight"}));
  EXPECT_EQ(Read(weights.layers[1].output), Values(layer + "self_attn.o_proj.weight"));
  EXPECT_EQ(Read(weights.layers[1].down), Values(layer + "mlp.down_proj.weight"));
  EXPECT_EQ(Read(weights.head), Values("lm_head.weight"));
  EXPECT_EQ(Read(weights.embedding), Values("model.embed_tokens.weight"));
  EXPECT_EQ(Read(weights.layers[1].mlp_norm), Values(layer + "post_attention_layernorm.weight"));
  EXPECT_EQ(Read(weights.final_norm), Values("model.norm.weight"));
  EXPECT_EQ(weights.layers[1].qkv_bias.data, nullptr);
  EXPECT_THAT(std::vector<float>(weights.inv_freq[0], weights.inv_freq[0] + 2),
              ElementsAre(1.0f, 0.5f));
}

TEST_F(Load, FillsEverythingThatAModelMayHave) {
  config_.qkv_bias = config_.output_bias = config_.qk_norm = config_.sandwich_norms = true;
  config_.tied_head = true;
  Checkpoint checkpoint = Gguf();
  ModelWeights weights = LoadWeights(checkpoint, config_, *device_, {}).value();
  const LayerWeights& layer = weights.layers[0];
  EXPECT_TRUE(weights.head.empty());
  EXPECT_EQ(Read(layer.qkv_bias),
            Joined({"blk.0.attn_q.bias", "blk.0.attn_k.bias", "blk.0.attn_v.bias"}));
  EXPECT_EQ(Read(layer.output_bias), Values("blk.0.attn_output.bias"));
  EXPECT_EQ(Read(layer.q_norm), Values("blk.0.attn_q_norm.weight"));
  EXPECT_EQ(Read(layer.k_norm), Values("blk.0.attn_k_norm.weight"));
  EXPECT_EQ(Read(layer.post_attention_norm), Values("blk.0.post_attention_norm.weight"));
  EXPECT_EQ(Read(layer.post_mlp_norm), Values("blk.0.post_ffw_norm.weight"));
}

TEST_F(Load, BringsTheLayersMatricesToFp8) {
  Checkpoint checkpoint = Safetensors();
  ModelWeights weights = LoadWeights(checkpoint, config_, *device_, {}, /*fp8=*/true).value();
  EXPECT_EQ(Read(weights.head), Values("lm_head.weight"));
  EXPECT_EQ(Read(weights.embedding), Values("model.embed_tokens.weight"));
  const std::pair<const Weight*, const char*> matrices[] = {
      {&weights.layers[1].output, "model.layers.1.self_attn.o_proj.weight"},
      {&weights.layers[1].down, "model.layers.1.mlp.down_proj.weight"}};
  for (auto [weight, name] : matrices) {
    const std::vector<float> kept = Read(*weight), values = Values(name);
    ASSERT_EQ(kept.size(), values.size());
    float largest = 0, difference = 0;
    for (size_t i = 0; i < kept.size(); ++i) {
      largest = std::max(largest, std::abs(values[i]));
      difference = std::max(difference, std::abs(kept[i] - values[i]));
    }
    EXPECT_GT(difference, 0) << name;
    EXPECT_LE(difference, largest * 17 / 448) << name;  // half of the widest step, 32
  }
}

TEST_F(Load, AddsOneToUnitOffsetNormsOfSafetensorsOnly) {
  config_.unit_offset_norms = true;
  Checkpoint from_folder = Safetensors();
  std::vector<float> plus_one = Values("model.norm.weight");
  for (float& value : plus_one) value += 1;
  EXPECT_EQ(Read(LoadWeights(from_folder, config_, *device_, {}).value().final_norm), plus_one);
  Checkpoint from_gguf = Gguf();
  EXPECT_EQ(Read(LoadWeights(from_gguf, config_, *device_, {}).value().final_norm),
            Values("output_norm.weight"));
}

TEST_F(Load, ReportsProgressUpToTheWhole) {
  Checkpoint checkpoint = Safetensors();
  std::vector<int64_t> done;
  int64_t total = 0;
  auto weights = LoadWeights(checkpoint, config_, *device_, [&](int64_t now, int64_t all) {
    done.push_back(now);
    total = all;
  });
  ASSERT_TRUE(weights.ok());
  EXPECT_EQ(total, checkpoint.total_bytes());
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  EXPECT_EQ(done.back(), total);
}

TEST_F(Load, RefusesBeforeItAllocates) {
  Checkpoint checkpoint = Safetensors();
  config_.layers.pop_back();
  Result<ModelWeights> weights = LoadWeights(checkpoint, config_, *device_, [](int64_t, int64_t) {
    FAIL() << "nothing is loaded of a checkpoint that does not match";
  });
  ASSERT_FALSE(weights.ok());
  EXPECT_EQ(weights.problems().size(), 9u);
  EXPECT_THAT(Text(weights.problems()),
              HasSubstr("is no part of architecture llama with 1 layers"));
}

TEST_F(Load, RefusesAConfigAlone) {
  Checkpoint checkpoint = OpenCheckpoint(folder_.Write("config.json", "{}")).value();
  EXPECT_THAT(Text(LoadWeights(checkpoint, config_, *device_, {}).problems()),
              HasSubstr("config.json: has no weights"));
}

TEST_F(Load, RefusesAFileThatShrankSinceItWasOpened) {
  Checkpoint checkpoint = Safetensors();
  std::filesystem::resize_file(folder_.path() + "/model.safetensors", 100);
  EXPECT_THAT(Text(LoadWeights(checkpoint, config_, *device_, {}).problems()),
              HasSubstr("the file has 100 bytes now"));
}

}  // namespace
}  // namespace ashlar
