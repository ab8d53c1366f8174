// Mixture-of-experts decoders with ordinary attention: geometry only, so that a cluster can be
// planned for them.
#include "model/mixture.h"

#include <algorithm>

#include "model/architecture.h"
#include "model/common.h"

namespace ashlar {
namespace {

// Attention of all layers; experts are read by the family.
int ReadLayers(ConfigReader& reader, ModelConfig& config) {
  int layers = ReadPlanned(reader, config);
  LayerSpec layer = ReadAttention(reader, config);
  config.layers.assign(static_cast<size_t>(layers), layer);
  for (int i = 0; i < layers; ++i) CountAttention(config, layer);
  return layers;
}

// Every layer a mixture whose experts are as wide as intermediate_size says.
void CountUniformExperts(ConfigReader& reader, ModelConfig& config, int layers) {
  config.intermediate = reader.Integer("intermediate_size", 1, kMaxExtent);
  Experts experts{.count = ReadExpertCount(reader), .width = config.intermediate};
  CountMlps(config, layers, config.intermediate, experts, [](int) { return true; });
}

void ReadWindow(ConfigReader& reader, ModelConfig& config, const std::function<bool(int)>& slides) {
  int window = static_cast<int>(reader.Integer("sliding_window", 1, kMaxWindow, 0));
  SetSlidingLayers(reader, config, window, [&](int i) { return window > 0 && slides(i); });
}

void ReadQwenMoe(ConfigReader& reader, ModelConfig& config) {
  int layers = ReadLayers(reader, config);
  CountQwenMlps(reader, config, layers);
  if (reader.Boolean("use_sliding_window", false)) {
    ReadWindow(reader, config, [](int) { return true; });
  }
}

}  // namespace

void CountQwenMlps(ConfigReader& reader, ModelConfig& config, int layers) {
  config.intermediate = reader.Integer("intermediate_size", 0, kMaxExtent, 0);
  Experts experts{
      .count = ReadExpertCount(reader),
      .width = reader.Integer("moe_intermediate_size", 1, kMaxExtent),
      .shared_width = reader.Integer("shared_expert_intermediate_size", 0, kMaxExtent, 0)};
  int64_t step = reader.Integer("decoder_sparse_step", 1, kMaxLayers, 1);
  std::vector<int64_t> dense = reader.Integers("mlp_only_layers", 0, kMaxLayers);
  CountMlps(config, layers, config.intermediate, experts, [&](int i) {
    return (i + 1) % step == 0 && std::find(dense.begin(), dense.end(), i) == dense.end();
  });
}

Experts ReadDeepSeekExperts(ConfigReader& reader) {
  int64_t width = reader.Integer("moe_intermediate_size", 1, kMaxExtent);
  std::string_view shared = FirstOf(reader, {"n_shared_experts", "num_shared_experts"});
  return {.count = ReadExpertCount(reader),
          .width = width,
          .shared_width = width * reader.Integer(shared, 0, kMaxExperts, 0)};
}

void ReadMixtral(ConfigReader& reader, ModelConfig& config) {
  reader.SetDefaults({{"num_local_experts", 8}});
  int layers = ReadLayers(reader, config);
  CountUniformExperts(reader, config, layers);
  ReadWindow(reader, config, [](int) { return true; });
}

void ReadQwen2Moe(ConfigReader& reader, ModelConfig& config) {
  reader.SetDefaults({{"num_experts", 60},
                      {"moe_intermediate_size", 1408},
                      {"shared_expert_intermediate_size", 5632}});
  ReadQwenMoe(reader, config);
}

void ReadQwen3Moe(ConfigReader& reader, ModelConfig& config) {
  reader.SetDefaults({{"num_experts", 128}, {"moe_intermediate_size", 768}});
  ReadQwenMoe(reader, config);
}

// GLM-4.5: the first layers are dense.
void ReadGlm4Moe(ConfigReader& reader, ModelConfig& config) {
  int layers = ReadLayers(reader, config);
  config.intermediate = reader.Integer("intermediate_size", 1, kMaxExtent);
  int64_t dense = reader.Integer("first_k_dense_replace", 0, kMaxLayers, 1);
  CountMlps(config, layers, config.intermediate, ReadDeepSeekExperts(reader),
            [dense](int i) { return i >= dense; });
}

void ReadMiniMaxM2(ConfigReader& reader, ModelConfig& config) {
  int layers = ReadLayers(reader, config);
  CountUniformExperts(reader, config, layers);
}

// gpt-oss: a learned sink in every head, and every other layer slides.
void ReadGptOss(ConfigReader& reader, ModelConfig& config) {
  reader.SetDefaults({{"head_dim", 64}, {"sliding_window", 128}});
  int layers = ReadLayers(reader, config);
  CountUniformExperts(reader, config, layers);
  ReadWindow(reader, config, [](int i) { return i % 2 == 0; });
  for (LayerSpec& layer : config.layers) layer.sinks = true;
}

// Llama 4: chunked attention but for the layers without rotary positions, which see everything.
void ReadLlama4(ConfigReader& reader, ModelConfig& config) {
  reader.SetDefaults({{"vocab_size", 202048},
                      {"hidden_size", 5120},
                      {"intermediate_size", 8192},
                      {"intermediate_size_mlp", 16384},
                      {"num_hidden_layers", 48},
                      {"num_attention_heads", 40},
                      {"num_key_value_heads", 8},
                      {"head_dim", 128},
                      {"max_position_embeddings", 131072},
                      {"num_local_experts", 16},
                      {"attention_chunk_size", 8192}});
  int layers = ReadLayers(reader, config);
  config.intermediate = reader.Integer("intermediate_size", 1, kMaxExtent);
  Experts experts{.count = ReadExpertCount(reader),
                  .width = config.intermediate,
                  .shared_width = config.intermediate};
  int64_t step = reader.Integer("interleave_moe_layer_step", 1, kMaxLayers, 1);
  CountMlps(config, layers, reader.Integer("intermediate_size_mlp", 1, kMaxExtent), experts,
            [step](int i) { return (i + 1) % step == 0; });

  std::vector<int64_t> rotary = reader.Integers("no_rope_layers", 0, 1);  // 1: has positions
  if (!rotary.empty() && rotary.size() != config.layers.size()) {
    reader.Refuse("no_rope_layers", std::to_string(rotary.size()) + " entries",
                  std::to_string(config.layers.size()) + ", one a layer",
                  "use the model's original files");
    return;
  }
  constexpr std::string_view kChunked = "chunked_attention", kFull = "full_attention";
  constexpr int kPeriod = 4;
  std::vector<std::string> types =
      LayerTypes(reader, "layer_types", config.layers.size(), {kChunked, kFull}, [&](int i) {
        bool full = rotary.empty() ? (i + 1) % kPeriod == 0 : rotary[static_cast<size_t>(i)] == 0;
        return full ? kFull : kChunked;
      });
  int chunk = static_cast<int>(reader.Integer("attention_chunk_size", 1, kMaxWindow));
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] != kChunked) continue;
    config.layers[i].kind = KvKind::kChunkedLocal;
    config.layers[i].window = chunk;
  }
}

}  // namespace ashlar
