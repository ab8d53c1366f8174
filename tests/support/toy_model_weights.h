// Tiny models of real architectures with seeded random weights, through the real forward pass.
#pragma once

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "support/toy_model_plan.h"

namespace ashlar::toy {

enum class Architecture { kLlama, kGemma };
inline constexpr int64_t kTinyVocab = 96;

inline ModelConfig TinyConfig(Architecture architecture) {
  bool gemma = architecture == Architecture::kGemma;
  ModelConfig config;
  config.architecture = gemma ? "gemma3" : "llama";
  config.hidden = 32;
  config.intermediate = 48;
  config.vocab = kTinyVocab;
  config.tied_head = true;
  config.eos = {0};
  config.context_length = 256;
  config.qk_norm = config.sandwich_norms = gemma;
  config.activation = gemma ? Activation::kGeluTanh : Activation::kSilu;
  config.embedding_scale = gemma ? std::sqrt(32.0f) : 1.0f;
  for (float base : {10'000.0f, 1'000'000.0f}) {
    Rope rope;
    for (int i = 0; i < 8; ++i) {
      rope.inv_freq.push_back(std::pow(base, -2.0f * static_cast<float>(i) / 16.0f));
    }
    config.ropes.push_back(rope);
  }
  for (int i = 0; i < 4; ++i) {
    LayerSpec layer;
    layer.heads = 4;
    layer.kv_heads = 2;
    layer.head_dim = layer.head_dim_v = 16;
    layer.scale = 0.25f;
    if (gemma && i != 3) {
      layer.kind = KvKind::kSliding;
      layer.window = 18;
    }
    layer.rope = gemma && i == 3 ? 1 : 0;
    config.layers.push_back(layer);
  }
  return config;
}

// The sources stay here: the plugin may read them in place.
class TinyWeights {
 public:
  TinyWeights(const ModelConfig& config, const Device& device) : device_(device) {
    weights.embedding = Matrix(config.vocab, config.hidden, 1.0f, true);
    weights.final_norm = Vector(config.hidden);
    for (const LayerSpec& spec : config.layers) {
      LayerWeights layer;
      int64_t heads = spec.heads + 2 * spec.kv_heads;
      layer.qkv = Matrix(heads * spec.head_dim, config.hidden, 0.4f);
      layer.output = Matrix(config.hidden, spec.heads * spec.head_dim_v, 0.4f);
      layer.gate_up = Matrix(2 * config.intermediate, config.hidden, 0.4f);
      layer.down = Matrix(config.hidden, config.intermediate, 0.3f);
      layer.attention_norm = Vector(config.hidden);
      layer.mlp_norm = Vector(config.hidden);
      if (config.sandwich_norms) {
        layer.post_attention_norm = Vector(config.hidden);
        layer.post_mlp_norm = Vector(config.hidden);
      }
      if (config.qk_norm) {
        layer.q_norm = Vector(spec.head_dim);
        layer.k_norm = Vector(spec.head_dim);
      }
      weights.layers.push_back(std::move(layer));
    }
    for (const Rope& rope : config.ropes) {
      weights.inv_freq.push_back(static_cast<const float*>(Keep(rope.inv_freq)));
    }
  }

  ModelWeights weights;

 private:
  std::vector<float> Random(int64_t count, float center, float spread) {
    std::vector<float> values;
    for (int64_t i = 0; i < count; ++i) {
      float uniform = static_cast<float>(random_()) / 4294967296.0f;
      values.push_back(center + spread * (2 * uniform - 1));
    }
    return values;
  }
  void* Keep(const std::vector<float>& values) {
    Buffer buffer = std::move(*device_.Alloc(static_cast<int64_t>(values.size() * sizeof(float))));
    void* data = buffer.data();
    std::memcpy(data, values.data(), values.size() * sizeof(float));
    weights.buffers.push_back(std::move(buffer));
    return data;
  }
  Weight Matrix(int64_t rows, int64_t cols, float spread, bool gathered = false) {
    sources_.push_back(Random(rows * cols, 0, spread));
    WeightPart part{DType::kF32, rows, std::as_bytes(std::span(sources_.back()))};
    return std::move(*device_.CreateWeight(std::span(&part, 1), cols, gathered));
  }
  Tensor Vector(int64_t size) {
    return Tensor::Of(Keep(Random(size, 1, 0.2f)), DType::kF32, {size});
  }

  const Device& device_;
  std::mt19937 random_{99};
  std::vector<std::vector<float>> sources_;
};

struct TinyBlocks {
  int block_tokens = 16;
  int kernel_block_tokens = 0;  // 0: the same
  int64_t full_blocks = 100;    // of the group that grows with the context
  DType kv = DType::kF32;
};

// Rows are the plugin's first for each kind.
inline Plan TinyPlan(Architecture architecture, const TinyBlocks& blocks, const Plugin& plugin) {
  Plan plan;
  plan.platform = plugin.name();
  plan.invariant = true;
  plan.model = TinyConfig(architecture);
  plan.context_length = plan.model.context_length;
  for (KvKind kind : {KvKind::kSliding, KvKind::kFull}) {
    std::vector<int> layers;
    for (size_t i = 0; i < plan.model.layers.size(); ++i) {
      if (plan.model.layers[i].kind == kind) layers.push_back(static_cast<int>(i));
    }
    if (layers.empty()) continue;
    const LayerSpec& layer = plan.model.layers[static_cast<size_t>(layers[0])];
    Group group{kind,
                layer.window,
                0,
                blocks.block_tokens,
                blocks.kernel_block_tokens,
                kind == KvKind::kFull ? blocks.full_blocks : 100};
    plan.groups.push_back(
        MakeGroup(group, static_cast<int>(plan.groups.size()), layers, layer, blocks.kv));
    for (const AttentionRow& row : plugin.rows()) {
      if (std::ranges::find(row.kinds, kind) == row.kinds.end()) continue;
      plan.groups.back().attention[0].row = row.name;
      break;
    }
  }
  Check(PlaceGroups(plan.groups, plan.layout).has_value(), "the toy's pools fit");
  return plan;
}

struct TinyEngine {
  std::unique_ptr<Device> device;
  Plan plan;
  TinyWeights source;
  std::unique_ptr<Engine> engine;

  TinyEngine(Architecture architecture, const TinyBlocks& blocks, const Engine::Options& options,
             std::unique_ptr<Device> on = OpenReference())
      : device(std::move(on)),
        plan(TinyPlan(architecture, blocks, device->plugin())),
        source(plan.model, *device),
        engine(std::move(*Engine::Start(plan, *device, std::move(source.weights),
                                        *MakeArena(plan, *device), options))) {}
  Engine* operator->() { return engine.get(); }
  Engine& operator*() { return *engine; }
};

}  // namespace ashlar::toy
