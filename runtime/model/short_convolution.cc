// LFM2: gated short convolutions, and full attention in some layers.
#include <algorithm>

#include "model/architecture.h"
#include "model/common.h"
#include "model/states.h"
#include "model/weight_count.h"

namespace ashlar {
namespace {

// The stated width is cut to two thirds and rounded up, unless the file says that it is final.
int64_t MlpWidth(ConfigReader& reader) {
  int64_t width =
      reader.Integer(FirstOf(reader, {"intermediate_size", "block_ff_dim"}), 1, kMaxExtent);
  if (!reader.Boolean("block_auto_adjust_ff_dim", true)) return width;
  double factor = reader.Number("block_ffn_dim_multiplier", 1e-3, 1e3, 1);
  int64_t multiple = reader.Integer("block_multiple_of", 1, kMaxExtent, 256);
  auto cut = static_cast<int64_t>(factor * static_cast<double>(2 * width / 3));
  return std::clamp<int64_t>((cut + multiple - 1) / multiple * multiple, 1, kMaxExtent);
}

void CountConvolution(ModelConfig& config, int64_t taps) {
  auto hidden = static_cast<double>(config.hidden);
  config.weights.linear += 4 * hidden * hidden;
  config.weights.kept += hidden * static_cast<double>(taps);
}

}  // namespace

void ReadLfm2(ConfigReader& reader, ModelConfig& config) {
  reader.SetDefaults({{"tie_word_embeddings", reader.Boolean("tie_embedding", true)}});
  int layers = ReadPlanned(reader, config);
  LayerSpec attention = ReadAttention(reader, config);
  int64_t taps = reader.Integer("conv_L_cache", 2, kMaxKernel, 3);
  LayerSpec convolution = StateLayer({ConvolutionState(config, taps, config.hidden)});
  std::vector<int64_t> full = reader.Integers("full_attn_idxs", 0, layers - 1);
  config.intermediate = MlpWidth(reader);
  for (const std::string& type :
       LayerTypes(reader, "layer_types", static_cast<size_t>(layers), {"full_attention", "conv"},
                  [&](int i) {
                    bool listed = std::find(full.begin(), full.end(), i) != full.end();
                    return full.empty() || listed ? "full_attention" : "conv";
                  })) {
    bool attends = type == "full_attention";
    config.layers.push_back(attends ? attention : convolution);
    if (attends) {
      CountAttention(config, attention);
    } else {
      CountConvolution(config, taps);
    }
    CountMlp(config, config.intermediate);
  }
}

}  // namespace ashlar
