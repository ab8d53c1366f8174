#include "model/weight_count.h"

namespace ashlar {

void CountEmbedding(ModelConfig& config) {
  double matrix = static_cast<double>(config.vocab) * static_cast<double>(config.hidden);
  config.weights.kept += matrix * (config.tied_head ? 1 : 2);
}

void CountAttention(ModelConfig& config, const LayerSpec& layer, bool gated) {
  double q = static_cast<double>(layer.heads) * layer.head_dim * (gated ? 2 : 1);
  double kv = static_cast<double>(layer.kv_heads) * (layer.head_dim + layer.head_dim_v);
  double out = static_cast<double>(layer.heads) * layer.head_dim_v;
  config.weights.linear += static_cast<double>(config.hidden) * (q + kv + out);
}

void CountMlp(ModelConfig& config, int64_t width, int matrices) {
  config.weights.linear +=
      static_cast<double>(config.hidden) * static_cast<double>(width) * matrices;
}

void CountExperts(ModelConfig& config, const Experts& experts) {
  double count = static_cast<double>(experts.count);
  double input = static_cast<double>(experts.input > 0 ? experts.input : config.hidden);
  config.weights.kept += count * static_cast<double>(config.hidden);
  config.weights.experts += count * input * static_cast<double>(experts.width) * experts.matrices;
  CountMlp(config, experts.shared_width, experts.matrices);
}

void CountMlps(ModelConfig& config, int layers, int64_t dense_width, const Experts& experts,
               const std::function<bool(int)>& sparse) {
  for (int layer = 0; layer < layers; ++layer) {
    if (experts.count > 0 && sparse(layer)) {
      CountExperts(config, experts);
    } else {
      CountMlp(config, dense_width);
    }
  }
}

void CountLayers(ModelConfig& config) {
  for (const LayerSpec& layer : config.layers) {
    CountAttention(config, layer);
    CountMlp(config, config.intermediate);
  }
}

}  // namespace ashlar
