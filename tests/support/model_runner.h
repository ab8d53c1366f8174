// One sequence through a model's forward pass on one plugin, with a cache of its own; no plan, no
// engine.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "device/device.h"
#include "model/forward.h"

namespace ashlar::testing_support {

class ModelRunner {
 public:
  // Layout LBHNC, blocks of 16 tokens in order, block 0 unused.
  ModelRunner(const ModelConfig& config, const Device& device, const ModelWeights& weights,
              DType kv_dtype, int max_tokens)
      : config_(config),
        weights_(weights),
        forward_(Forward::Create(config, device, max_tokens, max_tokens).value()) {
    int64_t blocks = (max_tokens + kBlock - 1) / kBlock + 1;
    for (const LayerSpec& layer : config.layers) {
      int64_t content = int64_t{layer.head_dim + layer.head_dim_v} * Info(kv_dtype).bytes;
      LayerKv kv;
      kv.view.token_stride = content;
      kv.view.head_stride = content * kBlock;
      kv.view.block_stride = kv.view.head_stride * layer.kv_heads;
      kv.view.blocks = blocks;
      kv.view.dtype = static_cast<ashlar_dtype>(kv_dtype);
      kv.view.block_tokens = kBlock;
      kv.view.kv_heads = layer.kv_heads;
      kv.view.head_dim = layer.head_dim;
      kv.view.head_dim_v = layer.head_dim_v;
      kv.row = RowFor(device.plugin(), layer.kind);
      memory_.push_back(device.Alloc(kv.view.block_stride * blocks).value());
      kv.view.base = memory_.back().data();
      kv_.push_back(kv);
    }
    for (int64_t block = 1; block < blocks; ++block) table_.push_back(static_cast<int32_t>(block));
  }

  // Appends tokens and returns the logits of each, [tokens, vocab].
  std::vector<float> Append(const std::vector<int32_t>& ids) {
    int count = static_cast<int>(ids.size());
    std::vector<int32_t> positions, rows, query_start = {0, count}, context = {length_ + count};
    std::vector<int64_t> slots;
    for (int i = 0; i < count; ++i) {
      positions.push_back(length_ + i);
      rows.push_back(i);
      slots.push_back(kBlock + length_ + i);
    }
    StepInput step;
    step.tokens = step.logit_rows = count;
    step.sequences = 1;
    step.max_query = count;
    step.max_context = length_ + count;
    step.ids = ids.data();
    step.positions = positions.data();
    step.query_start = query_start.data();
    step.context = context.data();
    step.logit_tokens = rows.data();
    step.groups = {{slots.data(), table_.data(), static_cast<int64_t>(table_.size())}};
    Tensor logits = forward_->Run(weights_, kv_, step).value();
    length_ += count;
    const float* data = static_cast<const float*>(logits.data);
    return {data, data + count * config_.vocab};
  }

 private:
  static constexpr int kBlock = 16;

  static int RowFor(const Plugin& plugin, KvKind kind) {
    for (size_t i = 0; i < plugin.rows().size(); ++i) {
      const std::vector<KvKind>& kinds = plugin.rows()[i].kinds;
      if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) return static_cast<int>(i);
    }
    Fail("the plugin has a row for each kind of the model", Name(kind));
  }

  const ModelConfig& config_;
  const ModelWeights& weights_;
  std::unique_ptr<Forward> forward_;
  std::vector<Buffer> memory_;
  std::vector<LayerKv> kv_;
  std::vector<int32_t> table_;
  int length_ = 0;
};

}  // namespace ashlar::testing_support
