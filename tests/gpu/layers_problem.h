// Layers with random shapes and values, of a step in which each sequence has one token.
#pragma once

#include "gpu/paged_cache.h"

namespace ashlar::gpu_test {

struct LayerMatrix {
  ashlar_weight_desc desc{};
  std::vector<std::vector<uint16_t>> parts;
};

enum LayerProduct { kQkv, kOutput, kGateUp, kDown, kProducts };

struct LayerValues {
  LayerMatrix weight[kProducts];
  std::vector<float> norm[2], bias[2], q_norm, k_norm;
  std::vector<uint8_t> arena;
  int group = 0, window = 0;
};

// Of a KV group: where its sequences' blocks stand.
struct LayerGroup {
  std::vector<int32_t> table;
  int64_t stride = 0;
  std::vector<int64_t> slots;
};

// Why no kernel of whole layers takes a step: its ops then carry it out.
enum Misfit { kNone, kTokens, kWeight, kScale, kMisfits };

struct LayersProblem {
  Cache cache;
  int64_t hidden = 0, wide = 0;
  int q_heads = 0;
  std::vector<int32_t> context;  // of sequences; idle ones last
  int active = 0;
  std::vector<LayerGroup> groups;
  std::vector<LayerValues> layers;
  bool float8_weights = false;
  std::vector<float> x, inv_freq;
  ashlar_rope_style style = ASHLAR_ROPE_HALF;
  ashlar_activation activation = ASHLAR_SILU;
  Misfit misfit = kNone;
  size_t first_call = 0;  // layers of a call ahead of the last one
  std::string text;

  int64_t tokens() const { return static_cast<int64_t>(context.size()); }
};

LayersProblem MakeLayersProblem(const Context& c);

}  // namespace ashlar::gpu_test
