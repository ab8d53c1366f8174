// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): one compressed entry a token stands
// for keys and values. Internal to model/.
#pragma once

#include "model/config.h"
#include "model/config_reader.h"

namespace ashlar {

// One layer's attention; its weights are counted once for each of `layers`.
LayerSpec ReadLatentAttention(ConfigReader& reader, ModelConfig& config, int layers);

}  // namespace ashlar
