// What the architecture wants from a checkpoint, as data, and the comparison of the two.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "model/config.h"
#include "model/forward.h"

namespace ashlar {

struct TensorNeed {
  std::string name;
  std::vector<int64_t> shape;  // rank 1: a norm or bias, which becomes f32; rank 2: a matrix
};

// One layer's tensors; an empty name: this model has none.
struct LayerNeeds {
  TensorNeed q, k, v, o, gate, up, down;
  TensorNeed attention_norm, mlp_norm, post_attention_norm, post_mlp_norm, q_norm, k_norm;
  TensorNeed q_bias, k_bias, v_bias, o_bias;
};

struct ModelNeeds {
  TensorNeed embedding, head, final_norm;
  std::vector<LayerNeeds> layers;
  std::vector<std::string> ignored;  // endings of names that may be there and are not read

  std::vector<const TensorNeed*> all() const;
};

ModelNeeds NeedsOf(const ModelConfig& config, Checkpoint::Format format);

// Every needed tensor is there with its shape and a usable dtype, and nothing else is. The list is
// cut after 20 mistakes, with the number of the others.
Problems CompareTensors(const Checkpoint& checkpoint, const ModelConfig& config,
                        const ModelNeeds& needs);

}  // namespace ashlar
