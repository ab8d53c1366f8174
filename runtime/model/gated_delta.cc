// Hybrids of a gated delta rule with attention: Qwen3-Next and Qwen3.5 (full attention in every
// fourth layer), Kimi Linear (latent attention).
#include <algorithm>

#include "model/architecture.h"
#include "model/common.h"
#include "model/latent.h"
#include "model/mixture.h"
#include "model/states.h"
#include "model/weight_count.h"

namespace ashlar {
namespace {

constexpr std::string_view kLinear = "linear_attention", kFull = "full_attention";

struct GatedDelta {
  int64_t k_heads, v_heads, k_dim, v_dim, kernel;
};

GatedDelta ReadGatedDelta(ConfigReader& reader) {
  GatedDelta mixer{.k_heads = reader.Integer("linear_num_key_heads", 1, kMaxRank),
                   .v_heads = reader.Integer("linear_num_value_heads", 1, kMaxRank),
                   .k_dim = reader.Integer("linear_key_head_dim", 1, kMaxRank),
                   .v_dim = reader.Integer("linear_value_head_dim", 1, kMaxRank),
                   .kernel = reader.Integer("linear_conv_kernel_dim", 2, kMaxKernel)};
  if (mixer.v_heads % mixer.k_heads != 0) {
    reader.Refuse("linear_num_value_heads", std::to_string(mixer.v_heads),
                  "a multiple of linear_num_key_heads " + std::to_string(mixer.k_heads),
                  "use the model's original files");
  }
  return mixer;
}

LayerSpec GatedDeltaLayer(ConfigReader& reader, const ModelConfig& config,
                          const GatedDelta& mixer) {
  int64_t channels = 2 * mixer.k_heads * mixer.k_dim + mixer.v_heads * mixer.v_dim;
  return StateLayer(
      {ConvolutionState(config, mixer.kernel, channels),
       {{mixer.v_heads, mixer.v_dim, mixer.k_dim}, StateDType(reader, "mamba_ssm_dtype", config)}});
}

void CountGatedDelta(ModelConfig& config, const GatedDelta& mixer) {
  auto hidden = static_cast<double>(config.hidden);
  auto keys = static_cast<double>(2 * mixer.k_heads * mixer.k_dim);
  auto values = static_cast<double>(mixer.v_heads * mixer.v_dim);
  auto gates = static_cast<double>(2 * mixer.v_heads);
  config.weights.linear += hidden * (keys + 2 * values + gates) + values * hidden;
  config.weights.kept += (keys + values) * static_cast<double>(mixer.kernel);
}

// Attention and mixers of all layers; MLPs are the family's.
int ReadQwenHybrid(ConfigReader& reader, ModelConfig& config, Json defaults) {
  defaults.update(Json{{"head_dim", 256},
                       {"linear_num_key_heads", 16},
                       {"linear_num_value_heads", 32},
                       {"linear_key_head_dim", 128},
                       {"linear_value_head_dim", 128},
                       {"linear_conv_kernel_dim", 4}});
  reader.SetDefaults(std::move(defaults));
  int layers = ReadPlanned(reader, config);
  LayerSpec attention = ReadAttention(reader, config);
  GatedDelta mixer = ReadGatedDelta(reader);
  LayerSpec recurrent = GatedDeltaLayer(reader, config, mixer);
  int64_t period = reader.Integer("full_attention_interval", 1, kMaxLayers, 4);
  for (const std::string& type :
       LayerTypes(reader, "layer_types", static_cast<size_t>(layers), {kLinear, kFull},
                  [period](int i) { return (i + 1) % period == 0 ? kFull : kLinear; })) {
    bool full = type == kFull;
    config.layers.push_back(full ? attention : recurrent);
    if (full) {
      CountAttention(config, attention, /*gated=*/true);
    } else {
      CountGatedDelta(config, mixer);
    }
  }
  return layers;
}

struct DeltaAttention {
  int64_t heads, head_dim, kernel;
};

// Kimi's delta attention decays each channel by itself; its state stays in float32.
LayerSpec DeltaAttentionLayer(const ModelConfig& config, const DeltaAttention& mixer) {
  StateShape convolution = ConvolutionState(config, mixer.kernel, mixer.heads * mixer.head_dim);
  return StateLayer({convolution,
                     convolution,
                     convolution,  // of q, k and v
                     {{mixer.heads, mixer.head_dim, mixer.head_dim}, DType::kF32}});
}

void CountDeltaAttention(ModelConfig& config, const DeltaAttention& mixer) {
  auto hidden = static_cast<double>(config.hidden), heads = static_cast<double>(mixer.heads);
  auto head_dim = static_cast<double>(mixer.head_dim), inner = heads * head_dim;
  double gates = 2 * (hidden * head_dim + head_dim * inner) + hidden * heads;
  config.weights.linear += 4 * hidden * inner + gates;
  config.weights.kept += 3 * inner * static_cast<double>(mixer.kernel);
}

DeltaAttention ReadDeltaAttention(ConfigReader& settings) {
  return {.heads = settings.Integer("num_heads", 1, kMaxRank),
          .head_dim = settings.Integer("head_dim", 1, kMaxRank),
          .kernel = settings.Integer("short_conv_kernel_size", 2, kMaxKernel)};
}

// Numbers of the layers with latent attention, counted from 1; the two lists of the file share out
// all layers.
std::vector<int64_t> LatentLayers(ConfigReader& settings, int layers) {
  std::vector<int64_t> full = settings.Integers("full_attn_layers", 1, layers);
  std::vector<int64_t> all = settings.Integers("kda_layers", 1, layers);
  all.insert(all.end(), full.begin(), full.end());
  std::sort(all.begin(), all.end());
  bool once = std::adjacent_find(all.begin(), all.end()) == all.end();
  if (once && all.size() == static_cast<size_t>(layers)) return full;
  settings.Refuse("full_attn_layers", std::to_string(all.size()) + " layers with kda_layers",
                  "each of " + std::to_string(layers) + " layers once in one of the lists",
                  "use the model's original files");
  return {};
}

}  // namespace

void ReadQwen3Next(ConfigReader& reader, ModelConfig& config) {
  int layers = ReadQwenHybrid(reader, config,
                              {{"num_experts", 512},
                               {"moe_intermediate_size", 512},
                               {"shared_expert_intermediate_size", 512}});
  CountQwenMlps(reader, config, layers);
}

void ReadQwen35(ConfigReader& reader, ModelConfig& config) {
  int layers = ReadQwenHybrid(reader, config,
                              {{"vocab_size", 248320},
                               {"hidden_size", 4096},
                               {"intermediate_size", 12288},
                               {"num_hidden_layers", 32},
                               {"num_attention_heads", 16},
                               {"num_key_value_heads", 4}});
  config.intermediate = reader.Integer("intermediate_size", 1, kMaxExtent);
  for (int i = 0; i < layers; ++i) CountMlp(config, config.intermediate);
}

void ReadQwen35Moe(ConfigReader& reader, ModelConfig& config) {
  int layers = ReadQwenHybrid(reader, config,
                              {{"vocab_size", 248320},
                               {"hidden_size", 2048},
                               {"num_hidden_layers", 40},
                               {"num_attention_heads", 16},
                               {"num_key_value_heads", 2},
                               {"num_experts", 256},
                               {"moe_intermediate_size", 512},
                               {"shared_expert_intermediate_size", 512}});
  CountQwenMlps(reader, config, layers);
}

void ReadKimiLinear(ConfigReader& reader, ModelConfig& config) {
  reader.SetDefaults({{"moe_intermediate_size", 1024}, {"num_shared_experts", 1}});
  int layers = ReadPlanned(reader, config);
  config.context_length = reader.Integer("model_max_length", 1, kMaxContext, config.context_length);
  config.intermediate = reader.Integer("intermediate_size", 1, kMaxExtent);

  Json settings = reader.Object("linear_attn_config");
  ConfigReader nested = ConfigReader::Nested(reader, settings, "linear_attn_config");
  DeltaAttention mixer = ReadDeltaAttention(nested);
  std::vector<int64_t> full = LatentLayers(nested, layers);
  LayerSpec recurrent = DeltaAttentionLayer(config, mixer);
  config.layers.assign(static_cast<size_t>(layers), recurrent);
  LayerSpec latent = ReadLatentAttention(reader, config, static_cast<int>(full.size()));
  for (int64_t layer : full) config.layers[static_cast<size_t>(layer - 1)] = latent;
  for (const LayerSpec& layer : config.layers) {
    if (layer.kind == KvKind::kMamba) CountDeltaAttention(config, mixer);
  }
  int64_t dense = reader.Integer("first_k_dense_replace", 0, kMaxLayers, 1);
  CountMlps(config, layers, config.intermediate, ReadDeepSeekExperts(reader),
            [dense](int i) { return i >= dense; });
}

}  // namespace ashlar
