// What the architecture readers share: the fields that every decoder has, in Hugging Face's and in
// GGUF's words.
#pragma once

#include "model/config.h"
#include "model/config_reader.h"

namespace ashlar {

// The geometry of a layer before kinds and windows are set; all layers start alike.
struct DecoderShape {
  int layers = 0;
  LayerSpec layer;  // full attention, scale 1/sqrt(head_dim)
  int rotary_dim = 0;
};

// Fills hidden, vocab, norms, context, end ids, dtype; refuses an activation other than the
// expected one.
DecoderShape ReadDecoder(ConfigReader& reader, ModelConfig& config, std::string_view activation);
DecoderShape ReadGgufDecoder(ConfigReader& reader, ModelConfig& config);

// layer_types as transformers writes them; without them every layer is `fallback(i)`.
template <class IsSliding>
void SetSlidingLayers(ConfigReader& reader, ModelConfig& config, int window, IsSliding fallback) {
  std::vector<std::string> types = reader.Strings("layer_types");
  if (!types.empty() && types.size() != config.layers.size()) {
    reader.Refuse("layer_types", std::to_string(types.size()) + " entries",
                  std::to_string(config.layers.size()) + ", one a layer",
                  "use the model's original files");
    return;
  }
  for (size_t i = 0; i < config.layers.size(); ++i) {
    bool sliding = types.empty() ? fallback(static_cast<int>(i)) : types[i] == "sliding_attention";
    if (!types.empty() && !sliding && types[i] != "full_attention") {
      reader.Refuse("layer_types", "\"" + types[i] + "\" is not supported",
                    "full_attention or sliding_attention", "choose a model with these");
      return;
    }
    if (!sliding) continue;
    config.layers[i].kind = KvKind::kSliding;
    config.layers[i].window = window;
  }
}

}  // namespace ashlar
