// Gemma 3 text: five sliding layers to one full, a rope for each kind, norms before and after both
// halves of a layer.
#include <cmath>

#include "model/architecture.h"
#include "model/common.h"
#include "model/rope.h"
#include "model/weight_count.h"

namespace ashlar {
namespace {

enum RopeIndex { kGlobal = 0, kLocal = 1 };

void SetGemma(ModelConfig& config) {
  config.qk_norm = config.sandwich_norms = true;
  config.activation = Activation::kGeluTanh;
  config.embedding_scale = std::sqrt(static_cast<float>(config.hidden));
}

void SetRopeOfKinds(ModelConfig& config) {
  for (LayerSpec& layer : config.layers) {
    layer.rope = layer.kind == KvKind::kSliding ? kLocal : kGlobal;
  }
}

// rope_parameters may be keyed by layer type; older files have rope_theta with rope_scaling, and
// rope_local_base_freq.
std::vector<Rope> ReadRopes(ConfigReader& reader, int rotary_dim, int64_t context) {
  Json by_kind = reader.Object("rope_parameters");
  if (by_kind.is_object() && by_kind.contains("full_attention")) {
    ConfigReader kinds = ConfigReader::Nested(reader, by_kind, "rope_parameters");
    auto read = [&](std::string_view kind, double theta) {
      Json settings = kinds.Object(kind);
      ConfigReader nested = ConfigReader::Nested(kinds, settings, kind);
      return RopeFrom(nested, rotary_dim, nested.Number("rope_theta", 1, 1e15, theta), context);
    };
    return {read("full_attention", 1e6), read("sliding_attention", 1e4)};
  }
  Rope local;
  local.inv_freq =
      PlainFrequencies(reader.Number("rope_local_base_freq", 1, 1e15, 1e4), rotary_dim);
  return {ReadRope(reader, rotary_dim, 1e6), local};
}

}  // namespace

void ReadGemma3(ConfigReader& reader, ModelConfig& config) {
  reader.SetDefaults({{"vocab_size", 262208},
                      {"hidden_size", 2304},
                      {"intermediate_size", 9216},
                      {"num_hidden_layers", 26},
                      {"num_attention_heads", 8},
                      {"num_key_value_heads", 4},
                      {"head_dim", 256},
                      {"max_position_embeddings", 131072}});
  DecoderShape shape = ReadDecoder(reader, config, "gelu_pytorch_tanh");
  config.tied_head = reader.Boolean("tie_word_embeddings", true);
  config.unit_offset_norms = true;
  config.ropes = ReadRopes(reader, shape.rotary_dim, config.context_length);
  double scalar = reader.Number("query_pre_attn_scalar", 1e-3, 1e9, 256);
  for (LayerSpec& layer : config.layers) layer.scale = static_cast<float>(1 / std::sqrt(scalar));
  int window = static_cast<int>(reader.Integer("sliding_window", 1, 1 << 30, 4096));
  int pattern = static_cast<int>(reader.Integer("sliding_window_pattern", 1, 1 << 20, 6));
  SetSlidingLayers(reader, config, window,
                   [pattern](int layer) { return (layer + 1) % pattern != 0; });
  for (std::string_view key : {"attn_logit_softcapping", "final_logit_softcapping"}) {
    if (reader.Has(key))
      reader.Refuse(key, "is set", "null", "choose a model without soft-capping");
  }
  if (reader.Boolean("attention_bias", false)) {
    reader.Refuse("attention_bias", "true is not supported", "false", "choose a model without it");
  }
  SetRopeOfKinds(config);
  SetGemma(config);
  CountEmbedding(config);
  CountLayers(config);
}

void ReadGemma3Gguf(ConfigReader& reader, ModelConfig& config) {
  DecoderShape shape = ReadGgufDecoder(reader, config);
  Rope local;
  local.inv_freq =
      PlainFrequencies(reader.Number("rope.freq_base_swa", 1, 1e15, 1e4), shape.rotary_dim);
  config.ropes = {ReadGgufRope(reader, shape.rotary_dim), local};
  int window = static_cast<int>(reader.Integer("attention.sliding_window", 1, 1 << 30, 512));
  constexpr int kPattern = 6;  // GGUF files of this architecture do not state it
  for (size_t i = 0; i < config.layers.size(); ++i) {
    if ((i + 1) % kPattern == 0) continue;
    config.layers[i].kind = KvKind::kSliding;
    config.layers[i].window = window;
  }
  SetRopeOfKinds(config);
  SetGemma(config);
  CountEmbedding(config);
  CountLayers(config);
}

}  // namespace ashlar
