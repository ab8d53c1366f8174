#include "model/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/nearest.h"

namespace ashlar {
namespace {

using testing::HasSubstr;

Json Llama() {
  return {{"model_type", "llama"},  {"hidden_size", 64},        {"intermediate_size", 96},
          {"num_hidden_layers", 6}, {"num_attention_heads", 4}, {"num_key_value_heads", 2},
          {"vocab_size", 256}};
}

std::string Refusal(const Json& config) {
  Result<ModelConfig> result = ReadModelConfig(config, "config.json");
  return result.ok() ? "accepted" : Text(result.problems());
}

TEST(ModelConfig, ReadsTheGeometry) {
  ModelConfig config = ReadModelConfig(Llama(), "config.json").value();
  EXPECT_EQ(config.layers.size(), 6u);
  EXPECT_EQ(config.layers[0].head_dim, 16);
  EXPECT_FLOAT_EQ(config.layers[0].scale, 0.25f);
  EXPECT_EQ(config.ropes[0].inv_freq.size(), 8u);
  EXPECT_TRUE(config.has_forward);
}

TEST(ModelConfig, UnknownArchitectureIsRefusedByNameWithTheNearest) {
  Json config = Llama();
  config["model_type"] = "deepseek_v4";
  EXPECT_EQ(Refusal(config),
            "config.json model_type: architecture \"deepseek_v4\" is not supported: " +
                OneOf(SupportedArchitectures()) + "; did the file mean deepseek_v2");
  config["model_type"] = "perceiver";
  EXPECT_THAT(Refusal(config), HasSubstr("; choose one of these"));
}

TEST(ModelConfig, UnknownRopeScalingIsRefusedByName) {  // BK-15
  Json config = Llama();
  config["rope_scaling"] = {{"rope_type", "spiral"}, {"factor", 2.0}};
  EXPECT_EQ(Refusal(config),
            "config.json rope_scaling.rope_type: \"spiral\" is not supported: default, linear, "
            "llama3 or yarn; choose a model with one of "
            "these");
}

TEST(ModelConfig, NestedRopeBaseIsUsed) {  // BK-15
  Json config = Llama();
  config["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 500000.0}};
  ModelConfig model = ReadModelConfig(config, "config.json").value();
  EXPECT_NEAR(model.ropes[0].inv_freq[1], std::pow(500000.0, -2.0 / 16), 1e-7);
}

TEST(ModelConfig, ReportsEveryMistakeAtOnce) {
  Json config = Llama();
  config["hidden_size"] = -1;
  config["num_attention_heads"] = "four";
  config["hidden_act"] = "relu";
  config["rms_norm_eps"] = true;
  EXPECT_EQ(ReadModelConfig(config, "config.json").problems().size(),
            4u + 1u);  // 1 head is no multiple of 2 KV heads either
}

TEST(ModelConfig, GeometryThatWouldOverflowIsRefused) {
  Json config = Llama();
  config["num_attention_heads"] = config["num_key_value_heads"] = 1 << 22;
  config["head_dim"] = 1 << 16;
  EXPECT_THAT(Refusal(config), HasSubstr("num_attention_heads: 4194304 heads of 65536"));
}

TEST(ModelConfig, MistralGivesEveryLayerTheWindow) {
  Json config = Llama();
  config["model_type"] = "mistral";
  config["sliding_window"] = 4096;
  ModelConfig model = ReadModelConfig(config, "config.json").value();
  for (const LayerSpec& layer : model.layers) {
    EXPECT_EQ(layer.kind, KvKind::kSliding);
    EXPECT_EQ(layer.window, 4096);
  }
}

TEST(ModelConfig, GemmaHasFiveSlidingLayersToOneFull) {
  Json config = Llama();
  config["model_type"] = "gemma3_text";
  config["sliding_window"] = 512;
  ModelConfig model = ReadModelConfig(config, "config.json").value();
  std::string kinds;
  for (const LayerSpec& layer : model.layers) kinds += layer.kind == KvKind::kSliding ? 's' : 'f';
  EXPECT_EQ(kinds, "sssssf");
  EXPECT_EQ(model.layers[0].rope, 1);
  EXPECT_EQ(model.layers[5].rope, 0);
  EXPECT_TRUE(model.sandwich_norms);
}

TEST(ModelConfig, UnknownLayerTypeIsRefusedByName) {
  Json config = Llama();
  config["model_type"] = "qwen3";
  config["use_sliding_window"] = true;
  config["sliding_window"] = 8;
  config["layer_types"] = {"full_attention", "full_attention", "full_attention",
                           "full_attention", "full_attention", "linear_attention"};
  EXPECT_EQ(Refusal(config),
            "config.json layer_types: \"linear_attention\" is not supported: full_attention or "
            "sliding_attention; choose a model with these");
}

TEST(ModelConfig, SlidingLayersNeedAWindow) {
  Json config = Llama();
  config["model_type"] = "phi3";
  config["layer_types"] = Json::array({"sliding_attention", "sliding_attention", "full_attention",
                                       "full_attention", "full_attention", "full_attention"});
  EXPECT_EQ(Refusal(config),
            "config.json sliding_window: is missing: a window in tokens, for sliding_attention "
            "layers; use the model's original files");
}

TEST(ModelConfig, AWrapperHandsItsQuantizationToTheLanguageModel) {
  Json inner = Llama();
  inner["num_attention_heads"] = 0;
  Json config = {{"model_type", "wrapper"}, {"text_config", inner}};
  EXPECT_THAT(Refusal(config),
              HasSubstr("config.json text_config num_attention_heads: 0: an integer from 1"));
  config["text_config"] = Llama();
  config["quantization_config"] = {{"quant_method", "fp8"}};
  ModelConfig model = ReadModelConfig(config, "config.json").value();
  EXPECT_EQ(model.quantization.method, "fp8");
  EXPECT_TRUE(model.has_forward);
  EXPECT_TRUE(model.plan_only());
}

TEST(ModelConfig, MoreWeightsThanAnyModelAreRefused) {
  Json config = Llama();
  config["hidden_size"] = config["intermediate_size"] = 1 << 22;
  config["num_hidden_layers"] = 4096;
  EXPECT_EQ(Refusal(config),
            "config.json: 2.3e+17 weights: at most 1.1e+15; use the model's original files");
}

TEST(ModelConfig, MixtureOfExpertsIsPlanOnly) {
  Json config = Llama();
  config["model_type"] = "mixtral";
  EXPECT_FALSE(ReadModelConfig(config, "config.json").value().has_forward);
}

TEST(ModelConfig, SoftCappingIsRefused) {
  Json config = Llama();
  config["model_type"] = "gemma3_text";
  config["final_logit_softcapping"] = 30.0;
  EXPECT_THAT(Refusal(config), HasSubstr("final_logit_softcapping: is set"));
}

}  // namespace
}  // namespace ashlar
