// Gemma 3n and 4: the last layers attend to the keys and values of earlier ones, every layer may
// have an embedding of its own, and in Gemma 4 full layers have heads of another size.
#include <algorithm>

#include "model/architecture.h"
#include "model/common.h"
#include "model/weight_count.h"

namespace ashlar {
namespace {

// An embedding a layer, mixed in by a gate and a projection.
void CountLayerInputs(ConfigReader& reader, ModelConfig& config, int layers) {
  auto width = static_cast<double>(reader.Integer("hidden_size_per_layer_input", 0, kMaxExtent));
  auto vocab = static_cast<double>(reader.Integer("vocab_size_per_layer_input", 1, kMaxExtent));
  config.weights.kept += vocab * width * layers;
  config.weights.linear += 3.0 * static_cast<double>(config.hidden) * width * layers;
}

// Between `altup_num_inputs` copies of the residual, and the low-rank path beside attention.
void CountAlternatingUpdates(ConfigReader& reader, ModelConfig& config, int layers) {
  auto hidden = static_cast<double>(config.hidden);
  auto inputs = static_cast<double>(reader.Integer("altup_num_inputs", 1, kMaxRank));
  auto rank = static_cast<double>(reader.Integer("laurel_rank", 1, kMaxRank));
  config.weights.linear += 2 * (inputs - 1) * hidden * hidden + 2 * hidden * rank * layers;
}

void CountQueries(ModelConfig& config, const LayerSpec& layer) {
  config.weights.linear +=
      2.0 * static_cast<double>(config.hidden) * layer.heads * layer.head_dim;  // and the output
}

// Each `period`-th layer is full. Of the last num_kv_shared_layers only the queries are their own:
// they cache nothing and have no LayerSpec.
void AddLayers(ConfigReader& reader, ModelConfig& config, int layers, const LayerSpec& full,
               int period) {
  LayerSpec sliding = ReadAttention(reader, config);
  sliding.kind = KvKind::kSliding;
  sliding.window = static_cast<int>(reader.Integer("sliding_window", 1, kMaxWindow));
  int64_t own = layers - reader.Integer("num_kv_shared_layers", 0, layers - 1, 0);
  int widening = reader.Boolean("use_double_wide_mlp", false) ? 2 : 1;
  std::vector<int64_t> widths =
      reader.IntegerForEach("intermediate_size", 1, kMaxExtent, static_cast<size_t>(layers));
  config.intermediate = *std::max_element(widths.begin(), widths.end());
  std::vector<std::string> types = LayerTypes(
      reader, "layer_types", static_cast<size_t>(layers), {"full_attention", "sliding_attention"},
      [period](int i) { return (i + 1) % period == 0 ? "full_attention" : "sliding_attention"; });
  for (size_t i = 0; i < types.size(); ++i) {
    const LayerSpec& layer = types[i] == "full_attention" ? full : sliding;
    if (static_cast<int64_t>(i) < own) {
      config.layers.push_back(layer);
      CountAttention(config, layer);
      CountMlp(config, widths[i]);
    } else {
      CountQueries(config, layer);
      CountMlp(config, widths[i] * widening);
    }
  }
}

}  // namespace

void ReadGemma3n(ConfigReader& reader, ModelConfig& config) {
  reader.SetDefaults({{"vocab_size", 262400},
                      {"hidden_size", 2048},
                      {"intermediate_size", 16384},
                      {"num_hidden_layers", 35},
                      {"num_attention_heads", 8},
                      {"num_key_value_heads", 2},
                      {"head_dim", 256},
                      {"max_position_embeddings", 32768},
                      {"sliding_window", 512},
                      {"vocab_size_per_layer_input", 262144},
                      {"hidden_size_per_layer_input", 256},
                      {"altup_num_inputs", 4},
                      {"num_kv_shared_layers", 15},
                      {"laurel_rank", 64},
                      {"tie_word_embeddings", true}});
  int layers = ReadPlanned(reader, config);
  constexpr int kPeriod = 5;
  AddLayers(reader, config, layers, ReadAttention(reader, config), kPeriod);
  CountLayerInputs(reader, config, layers);
  CountAlternatingUpdates(reader, config, layers);
}

void ReadGemma4(ConfigReader& reader, ModelConfig& config) {
  reader.SetDefaults({{"vocab_size", 262144},
                      {"hidden_size", 2304},
                      {"intermediate_size", 9216},
                      {"num_hidden_layers", 30},
                      {"num_attention_heads", 8},
                      {"num_key_value_heads", 4},
                      {"head_dim", 256},
                      {"global_head_dim", 512},
                      {"max_position_embeddings", 131072},
                      {"sliding_window", 512},
                      {"vocab_size_per_layer_input", 262144},
                      {"hidden_size_per_layer_input", 256},
                      {"tie_word_embeddings", true}});
  int layers = ReadPlanned(reader, config);
  bool shared_values = reader.Boolean("attention_k_eq_v", false);
  std::string_view kv_key = shared_values && reader.Has("num_global_key_value_heads")
                                ? "num_global_key_value_heads"
                                : "num_key_value_heads";
  LayerSpec full = MakeAttention(
      reader, "num_attention_heads", reader.Integer("num_attention_heads", 1, kMaxExtent), kv_key,
      reader.Integer(kv_key, 1, kMaxExtent), reader.Integer("global_head_dim", 1, kMaxRank));
  constexpr int kPeriod = 6;
  AddLayers(reader, config, layers, full, kPeriod);
  CountLayerInputs(reader, config, layers);
  if (!reader.Boolean("enable_moe_block", false)) return;
  Experts experts{.count = ReadExpertCount(reader),
                  .width = reader.Integer("moe_intermediate_size", 1, kMaxExtent)};
  for (int i = 0; i < layers; ++i) CountExperts(config, experts);  // beside each layer's MLP
}

}  // namespace ashlar
