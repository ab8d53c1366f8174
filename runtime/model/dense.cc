// Dense decoders that are planned only: they differ in which layers slide, and in what their files
// leave out.
#include "model/architecture.h"
#include "model/common.h"
#include "model/weight_count.h"

namespace ashlar {
namespace {

// `slides` decides for layers that layer_types does not describe, if the model has a window.
void ReadDense(ConfigReader& reader, ModelConfig& config, const std::function<bool(int)>& slides) {
  int layers = ReadPlanned(reader, config);
  config.intermediate = reader.Integer("intermediate_size", 1, kMaxExtent);
  config.layers.assign(static_cast<size_t>(layers), ReadAttention(reader, config));
  CountLayers(config);
  int window = static_cast<int>(reader.Integer("sliding_window", 1, kMaxWindow, 0));
  SetSlidingLayers(reader, config, window, [&](int i) { return window > 0 && slides(i); });
}

std::function<bool(int)> AllButEach(int64_t period) {
  return [period](int layer) { return (layer + 1) % period != 0; };
}

constexpr int kAllFull = 1;

}  // namespace

void ReadDense(ConfigReader& reader, ModelConfig& config) {
  ReadDense(reader, config, AllButEach(kAllFull));
}

void ReadTiedDense(ConfigReader& reader, ModelConfig& config) {
  reader.SetDefaults({{"tie_word_embeddings", true}});
  ReadDense(reader, config);
}

void ReadCohere2(ConfigReader& reader, ModelConfig& config) {
  reader.SetDefaults({{"tie_word_embeddings", true}, {"sliding_window", 4096}});
  ReadDense(reader, config, AllButEach(reader.Integer("sliding_window_pattern", 1, kMaxLayers, 4)));
}

void ReadGemma2(ConfigReader& reader, ModelConfig& config) {
  reader.SetDefaults({{"tie_word_embeddings", true}, {"head_dim", 256}, {"sliding_window", 4096}});
  ReadDense(reader, config, AllButEach(2));
}

void ReadOlmo3(ConfigReader& reader, ModelConfig& config) {
  reader.SetDefaults({{"sliding_window", 4096}});
  ReadDense(reader, config, AllButEach(4));
}

// Files with a context longer than the first models' state a window that is longer still: it never
// cuts.
void ReadPhi3(ConfigReader& reader, ModelConfig& config) {
  ReadDense(reader, config, [](int) { return true; });
  for (LayerSpec& layer : config.layers) {
    if (layer.window < config.context_length) continue;
    layer.kind = KvKind::kFull;
    layer.window = 0;
  }
}

}  // namespace ashlar
