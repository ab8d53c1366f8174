// Counting the weights that a geometry implies. Internal to model/.
#pragma once

#include <cstdint>
#include <functional>

#include "model/config.h"

namespace ashlar {

// Embedding and, unless it is tied, head.
void CountEmbedding(ModelConfig& config);

// Projections q, k, v and o; `gated`: q is doubled by a gate of the output.
void CountAttention(ModelConfig& config, const LayerSpec& layer, bool gated = false);

// `matrices` is 3 for a gated MLP, 2 for a plain one.
void CountMlp(ModelConfig& config, int64_t width, int matrices = 3);

struct Experts {
  int64_t count = 0;         // 0: none
  int64_t width = 0;         // of each
  int64_t shared_width = 0;  // of all that every token passes
  int matrices = 3;
  int64_t input = 0;  // columns that an expert reads; 0: the hidden size
};
// Router, routed and shared experts of one layer.
void CountExperts(ModelConfig& config, const Experts& experts);

// Each layer's MLP: experts where `sparse(layer)`, else dense.
void CountMlps(ModelConfig& config, int layers, int64_t dense_width, const Experts& experts,
               const std::function<bool(int)>& sparse);

// All layers of a dense decoder with gated MLPs of the intermediate size.
void CountLayers(ModelConfig& config);

}  // namespace ashlar
