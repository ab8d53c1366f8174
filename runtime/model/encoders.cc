// Models with an encoder: the BERT family, which caches nothing, and Whisper, whose decoder attends
// to itself and to what the encoder made of the audio.
#include <algorithm>

#include "model/architecture.h"
#include "model/common.h"
#include "model/weight_count.h"

namespace ashlar {
namespace {

LayerSpec OfKind(LayerSpec layer, KvKind kind) {
  layer.kind = kind;
  return layer;
}

int ReadEncoder(ConfigReader& reader, ModelConfig& config, int mlp_matrices) {
  int layers = ReadPlanned(reader, config);
  LayerSpec layer = OfKind(ReadAttention(reader, config), KvKind::kEncoderOnly);
  config.layers.assign(static_cast<size_t>(layers), layer);
  config.intermediate = reader.Integer("intermediate_size", 1, kMaxExtent);
  for (int i = 0; i < layers; ++i) {
    CountAttention(config, layer);
    CountMlp(config, config.intermediate, mlp_matrices);
  }
  return layers;
}

// One half of an encoder-decoder, under keys of its own.
struct Half {
  int layers = 0;
  LayerSpec attention;
  int64_t mlp_width = 0;
};

Half ReadHalf(ConfigReader& reader, const ModelConfig& config, const std::string& name) {
  std::string heads_key = name + "_attention_heads";
  Half half;
  half.layers = static_cast<int>(reader.Integer(name + "_layers", 1, kMaxLayers));
  int64_t heads = reader.Integer(heads_key, 1, kMaxRank);
  int64_t head_dim = std::clamp<int64_t>(config.hidden / heads, 1, kMaxRank);
  half.attention = MakeAttention(reader, heads_key, heads, heads_key, heads, head_dim);
  half.mlp_width = reader.Integer(name + "_ffn_dim", 1, kMaxExtent);
  return half;
}

}  // namespace

void ReadBert(ConfigReader& reader, ModelConfig& config) {
  reader.SetDefaults({{"tie_word_embeddings", true}});
  ReadEncoder(reader, config, /*mlp_matrices=*/2);
  config.weights.kept +=
      static_cast<double>(config.context_length) * static_cast<double>(config.hidden);
}

// ModernBERT: each third layer sees everything, the others a neighbourhood.
void ReadModernBert(ConfigReader& reader, ModelConfig& config) {
  reader.SetDefaults({{"tie_word_embeddings", true}});
  int layers = ReadEncoder(reader, config, /*mlp_matrices=*/3);
  int64_t period = reader.Integer("global_attn_every_n_layers", 1, kMaxLayers, 3);
  int64_t neighbourhood = reader.Integer("local_attention", 2, kMaxWindow, 128);
  std::vector<std::string> types = LayerTypes(
      reader, "layer_types", static_cast<size_t>(layers), {"full_attention", "sliding_attention"},
      [period](int i) { return i % period == 0 ? "full_attention" : "sliding_attention"; });
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] == "sliding_attention") {
      config.layers[i].window = static_cast<int>(neighbourhood / 2);
    }
  }
}

void ReadWhisper(ConfigReader& reader, ModelConfig& config) {
  config.hidden = reader.Integer("d_model", 1, kMaxExtent);
  reader.SetDefaults(
      {{"tie_word_embeddings", true},
       {"hidden_size", config.hidden},
       {"num_hidden_layers", 1},  // each half states its own
       {"max_position_embeddings", reader.Integer("max_target_positions", 1, kMaxContext, 448)}});
  ReadPlanned(reader, config);
  config.encoder_length = reader.Integer("max_source_positions", 1, kMaxContext, 1500);
  Half encoder = ReadHalf(reader, config, "encoder");
  Half decoder = ReadHalf(reader, config, "decoder");
  for (int i = 0; i < encoder.layers; ++i) {
    config.layers.push_back(OfKind(encoder.attention, KvKind::kEncoderOnly));
    CountAttention(config, encoder.attention);
    CountMlp(config, encoder.mlp_width, /*matrices=*/2);
  }
  for (int i = 0; i < decoder.layers; ++i) {
    config.layers.push_back(decoder.attention);
    config.layers.push_back(OfKind(decoder.attention, KvKind::kCross));
    CountAttention(config, decoder.attention);
    CountAttention(config, decoder.attention);
    CountMlp(config, decoder.mlp_width, /*matrices=*/2);
  }
  config.intermediate = decoder.mlp_width;
}

}  // namespace ashlar
