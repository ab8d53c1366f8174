// Experts as families of models state them. Internal to model/.
#pragma once

#include "model/config.h"
#include "model/config_reader.h"
#include "model/weight_count.h"

namespace ashlar {

// Qwen: experts in each decoder_sparse_step-th layer that is not among mlp_only_layers. Counts the
// MLPs of all layers.
void CountQwenMlps(ConfigReader& reader, ModelConfig& config, int layers);

// DeepSeek: routed and shared experts of moe_intermediate_size.
Experts ReadDeepSeekExperts(ConfigReader& reader);

}  // namespace ashlar
