// What is peculiar to one family, and the mistakes that its files can hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/config.h"
#include "support/model_configs.h"

namespace ashlar {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::PublicConfig;

ModelConfig Read(const Json& config) { return ReadModelConfig(config, "config.json").value(); }

std::string Refusal(const Json& config) {
  Result<ModelConfig> result = ReadModelConfig(config, "config.json");
  return result.ok() ? "accepted" : Text(result.problems());
}

// A letter a layer.
std::string Kinds(const ModelConfig& model) {
  std::string kinds;
  for (const LayerSpec& layer : model.layers) {
    kinds += "fMsScKxem"[static_cast<int>(layer.kind)];
  }
  return kinds;
}

Json Shortened(const std::string& name, int layers) {
  Json config = PublicConfig(name);
  config["num_hidden_layers"] = layers;
  return config;
}

TEST(Latent, OneHeadHoldsRankAndRotaryPartAndNoValue) {
  const LayerSpec layer = Read(PublicConfig("deepseek-v2-lite")).layers[0];
  EXPECT_EQ(layer.kv_heads, 1);
  EXPECT_EQ(layer.head_dim, 512 + 64);
  EXPECT_EQ(layer.head_dim_v, 0);
  EXPECT_FLOAT_EQ(layer.scale, 1 / std::sqrt(128.0f + 64));
  EXPECT_FALSE(layer.sparse);
  EXPECT_TRUE(Read(PublicConfig("deepseek-v3.2")).layers[0].sparse);
}

TEST(Latent, ExpertsFollowTheDenseLayers) {
  Json config = Shortened("deepseek-v3", 4);
  double with_three = Read(config).weights.experts;
  config["mlp_layer_types"] = {"dense", "dense", "sparse", "sparse"};
  EXPECT_EQ(Read(config).weights.experts, 2 * with_three);
  config["mlp_layer_types"] = {"dense", "dense", "sparse"};
  EXPECT_THAT(Refusal(config), HasSubstr("mlp_layer_types: 3 entries: 4, one a layer"));
}

TEST(GatedDelta, StatesHaveTheSheetsShapesAndBytes) {
  ModelConfig model = Read(PublicConfig("qwen3-next-80b-a3b"));
  EXPECT_EQ(Kinds(model).substr(0, 8), "mmmfmmmf");
  EXPECT_THAT(model.layers[0].states, ElementsAre(StateShape{{3, 8192}, DType::kBF16},
                                                  StateShape{{32, 128, 128}, DType::kBF16}));
  Json stated = PublicConfig("qwen3-next-80b-a3b");
  stated["mamba_ssm_dtype"] = "float32";
  EXPECT_EQ(Read(stated).layers[0].states[1].dtype, DType::kF32);
  stated["mamba_ssm_dtype"] = "int3";
  EXPECT_EQ(Refusal(stated),
            "config.json mamba_ssm_dtype: \"int3\" is not supported: float32, bfloat16 or float16; "
            "use the model's original files");
}

TEST(GatedDelta, ValueHeadsAreAMultipleOfKeyHeads) {
  Json config = PublicConfig("qwen3-next-80b-a3b");
  config["linear_num_value_heads"] = 24;
  EXPECT_THAT(Refusal(config),
              HasSubstr("linear_num_value_heads: 24: a multiple of linear_num_key_heads 16"));
}

TEST(KimiLinear, TwoListsShareOutAllLayers) {
  Json config = PublicConfig("kimi-linear-48b-a3b");
  EXPECT_EQ(Kinds(Read(config)), "mmmMmmmMmmmMmmmMmmmMmmmMmmM");
  config["linear_attn_config"]["full_attn_layers"] = {4, 4};
  EXPECT_THAT(
      Refusal(config),
      HasSubstr("linear_attn_config.full_attn_layers: 22 layers with kda_layers: each of 27 "
                "layers once"));
  config["linear_attn_config"]["full_attn_layers"] = {28};
  EXPECT_THAT(Refusal(config),
              HasSubstr("full_attn_layers: [28]: a list of integers from 1 to 27"));
}

TEST(Llama4, LayersWithoutPositionsSeeEverything) {
  Json config = PublicConfig("llama-4-scout");
  ModelConfig model = Read(config);
  EXPECT_EQ(Kinds(model).substr(0, 8), "cccfcccf");
  EXPECT_EQ(model.layers[0].window, 8192);
  Json& text = config["text_config"];
  text["num_hidden_layers"] = 4;
  text["no_rope_layers"] = {0, 1, 1, 0};
  EXPECT_EQ(Kinds(Read(config)), "fccf");
  text["no_rope_layers"] = {0, 1};
  EXPECT_THAT(Refusal(config), HasSubstr("no_rope_layers: 2 entries: 4, one a layer"));
  text["no_rope_layers"] = {0, 2, 1, 0};
  EXPECT_THAT(Refusal(config),
              HasSubstr("no_rope_layers: [0,2,1,0]: a list of integers from 0 to 1"));
}

TEST(GptOss, EveryHeadHasASink) {
  ModelConfig model = Read(PublicConfig("gpt-oss-20b"));
  EXPECT_EQ(Kinds(model).substr(0, 4), "sfsf");
  for (const LayerSpec& layer : model.layers) EXPECT_TRUE(layer.sinks);
}

TEST(NemotronH, LayersWithoutACacheAreLeftOut) {
  Json config = Shortened("nemotron-h-8b", 5);
  config["hybrid_override_pattern"] = "M-*M-";
  EXPECT_EQ(Kinds(Read(config)), "mfm");
  Json words = config;
  words.erase("hybrid_override_pattern");
  words.erase("num_hidden_layers");  // newer files count the list
  words["layers_block_type"] = {"mamba", "mlp", "attention", "mamba", "mlp"};
  EXPECT_EQ(Kinds(Read(words)), "mfm");
  EXPECT_EQ(Read(words).parameters(), Read(config).parameters());
  config["hybrid_override_pattern"] = "M-*MX";
  EXPECT_THAT(Refusal(config), HasSubstr("hybrid_override_pattern: \"X\" is not supported"));
  config["hybrid_override_pattern"] = "M-*M";
  EXPECT_THAT(Refusal(config), HasSubstr("hybrid_override_pattern: 4 entries: 5, one a layer"));
}

TEST(FalconH1, AttentionAndMixerStandSideBySide) {
  EXPECT_EQ(Kinds(Read(Shortened("falcon-h1-7b", 2))), "fmfm");
}

TEST(GraniteHybrid, OldAndNewNamesOfLayersMeanTheSame) {
  Json config = Shortened("granite-4.0-h-small", 3);
  config["layer_types"] = {"mamba", "attention", "mamba"};
  EXPECT_EQ(Kinds(Read(config)), "mfm");
  config["layer_types"] = {"linear_attention", "full_attention", "linear_attention"};
  EXPECT_EQ(Kinds(Read(config)), "mfm");
  config["mamba_n_heads"] = 127;
  EXPECT_THAT(Refusal(config), HasSubstr("mamba_n_heads: 127: heads that fill a mixer of 8192"));
}

TEST(MiniMax, TypesAreNumbersOrNames) {
  Json config = Shortened("minimax-m1", 3);
  config["attn_type_list"] = {0, 0, 1};
  EXPECT_EQ(Kinds(Read(config)), "mmf");
  config["attn_type_list"] = {0, 1};
  EXPECT_THAT(Refusal(config), HasSubstr("attn_type_list: 2 entries: 3, one a layer"));
  config.erase("attn_type_list");
  config["layer_types"] = {"full_attention", "linear_attention", "linear_attention"};
  EXPECT_EQ(Kinds(Read(config)), "fmm");
}

TEST(Whisper, EncoderFirstThenSelfAndCrossOfEachDecoderLayer) {
  Json config = PublicConfig("whisper-large-v3");
  config["encoder_layers"] = 2;
  config["decoder_layers"] = 3;
  ModelConfig model = Read(config);
  EXPECT_EQ(Kinds(model), "eefxfxfx");
  EXPECT_EQ(model.encoder_length, 1500);
  EXPECT_EQ(model.context_length, 448);
}

TEST(ModernBert, MostLayersSeeANeighbourhood) {
  ModelConfig model = Read(PublicConfig("modernbert-base"));
  EXPECT_EQ(Kinds(model), std::string(22, 'e'));
  EXPECT_EQ(model.layers[0].window, 0);
  EXPECT_EQ(model.layers[1].window, 64);
}

TEST(Phi3, AWindowLongerThanTheContextIsNone) {
  Json config = PublicConfig("phi-3-mini-4k");
  EXPECT_EQ(Read(config).layers[0].kind, KvKind::kSliding);
  config["sliding_window"] = 262144;
  EXPECT_EQ(Read(config).layers[0].kind, KvKind::kFull);
  EXPECT_EQ(Read(config).layers[0].window, 0);
}

TEST(Gemma3, ATextConfigMayLeaveOutWhatItsClassSays) {
  Json config = {{"model_type", "gemma3"},
                 {"text_config",
                  {{"model_type", "gemma3_text"},
                   {"hidden_size", 2560},
                   {"num_hidden_layers", 34},
                   {"intermediate_size", 10240},
                   {"sliding_window", 1024}}}};
  ModelConfig model = Read(config);
  EXPECT_EQ(model.layers[0].heads, 8);
  EXPECT_EQ(model.layers[0].kv_heads, 4);
  EXPECT_EQ(model.layers[0].head_dim, 256);
}

TEST(Gemma3n, ReadersOfEarlierCachesAreLeftOut) {
  ModelConfig model = Read(PublicConfig("gemma-3n-e4b"));
  EXPECT_EQ(Kinds(model), "ssssfssssfssssfssssf");  // 20 of 35
  Json config = PublicConfig("gemma-3n-e4b");
  config["text_config"]["num_kv_shared_layers"] = 35;
  EXPECT_THAT(Refusal(config), HasSubstr("num_kv_shared_layers: 35: an integer from 0 to 34"));
}

TEST(Gemma3n, TheMlpsWidthIsOneNumberOrOneALayer) {
  Json config = PublicConfig("gemma-3n-e4b");
  ModelConfig one = Read(config);
  config["text_config"]["intermediate_size"] = std::vector<int>(35, 16384);
  EXPECT_EQ(Read(config).parameters(), one.parameters());
  config["text_config"]["intermediate_size"] = {16384, 16384};
  EXPECT_THAT(Refusal(config), HasSubstr("intermediate_size: 2 entries: 35, one a layer"));
}

TEST(Gemma4, FullLayersHaveHeadsOfTheirOwn) {
  ModelConfig model = Read(PublicConfig("gemma-4-31b"));
  EXPECT_EQ(Kinds(model).substr(0, 6), "sssssf");
  EXPECT_EQ(model.layers[0].kv_heads, 16);
  EXPECT_EQ(model.layers[0].head_dim, 256);
  EXPECT_EQ(model.layers[5].kv_heads, 4);
  EXPECT_EQ(model.layers[5].head_dim, 512);
}

TEST(PlannedRope, KnownTypesPassAndOthersAreNamed) {
  Json config = PublicConfig("olmo-3-7b");
  config["rope_scaling"] = {{"type", "longrope"}};
  EXPECT_EQ(Refusal(config), "accepted");
  config["rope_scaling"] = {{"rope_type", "spiral"}};
  EXPECT_EQ(Refusal(config),
            "config.json rope_scaling.rope_type: \"spiral\" is not supported: default, dynamic, "
            "linear, llama3, longrope, mrope, proportional, su or yarn; choose a model with one of "
            "these");
  config["rope_scaling"] = {{"full_attention", {{"rope_type", "spiral"}}}};
  EXPECT_THAT(Refusal(config), HasSubstr("rope_scaling.full_attention.rope_type: \"spiral\""));
}

TEST(Planned, RelativesOfTheseModelsAreReadAlike) {
  const std::pair<const char*, const char*> relatives[] = {{"cohere", "llama-3.1-8b"},
                                                           {"glm4v_moe_text", "glm-4.5-air"},
                                                           {"granite", "llama-3.1-8b"},
                                                           {"minimax_text_01", "minimax-m1"},
                                                           {"minimax", "minimax-m1"},
                                                           {"ministral3", "mistral-small-24b"},
                                                           {"qwen3_vl_moe_text", "qwen3-30b-a3b"},
                                                           {"qwen3_vl_text", "qwen3-8b"},
                                                           {"roberta", "bge-m3"},
                                                           {"seed_oss", "llama-3.1-8b"},
                                                           {"smollm3", "llama-3.2-1b"}};
  for (const auto& [relative, model] : relatives) {
    Json config = PublicConfig(model);
    ModelConfig original = Read(config);
    config["model_type"] = relative;
    ModelConfig read = Read(config);
    EXPECT_EQ(Kinds(read), Kinds(original)) << relative;
    EXPECT_EQ(read.parameters(), original.parameters()) << relative;
    EXPECT_FALSE(read.has_forward) << relative;
  }
}

TEST(Bamba, ListedLayersAttend) {
  Json config = PublicConfig("granite-4.0-h-small");
  config["model_type"] = "bamba";
  config["num_hidden_layers"] = 3;
  config["attn_layer_indices"] = {1};
  EXPECT_EQ(Kinds(Read(config)), "mfm");
  config["attn_layer_indices"] = {3};
  EXPECT_THAT(Refusal(config),
              HasSubstr("attn_layer_indices: [3]: a list of integers from 0 to 2"));
}

TEST(Planned, AnUnknownWeightTypeIsNamed) {
  Json config = PublicConfig("phi-4");
  config["torch_dtype"] = "complex64";
  EXPECT_EQ(
      Refusal(config),
      "config.json torch_dtype: \"complex64\" is not supported: bfloat16, float16, float32 or "
      "a float8; use the model's original files");
}

}  // namespace
}  // namespace ashlar
