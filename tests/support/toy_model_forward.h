// A deterministic model whose answers prove which cache entries were read: the KV of a token is a
// hash of its id and of the KV before it, and the next token hangs on every entry that its layer's
// window shows. A wrong, stale or foreign block anywhere gives another answer.
#pragma once

#include <atomic>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

#include "base/check.h"
#include "model/forward.h"

namespace ashlar::toy {

inline uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x2545f4914f6cdd1du;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

class ToyForward final : public Forward {
 public:
  struct Hooks {
    // Sees each row of logits with the token that it follows.
    std::function<void(std::span<float> row, int32_t token)> row;
    // Before each step; a problem is a device fault.
    std::function<Status(const StepInput& step)> step;
    bool light = false;  // reads only the last entry, for speed
  };

  ToyForward(const ModelConfig& config, int logit_rows, Hooks hooks)
      : config_(config),
        hooks_(std::move(hooks)),
        logits_(static_cast<size_t>(logit_rows * config.vocab)) {}
  ToyForward(const ModelConfig& config, int logit_rows) : ToyForward(config, logit_rows, Hooks{}) {}

  Result<Tensor> Run(const ModelWeights&, const std::vector<LayerKv>& kv,
                     const StepInput& step) override {
    if (hooks_.step) {
      if (auto status = hooks_.step(step); !status.ok()) return status.problems();
    }
    int row = 0;
    for (int s = 0; s < step.sequences; ++s) {
      for (int t = step.query_start[s]; t < step.query_start[s + 1]; ++t) {
        int position = step.context[s] - (step.query_start[s + 1] - t);
        Check(position == step.positions[t], "positions follow from context and query_start");
        for (size_t layer = 0; layer < kv.size(); ++layer) Write(kv, layer, step, s, t, position);
        bool wanted = row < step.logit_rows && step.logit_tokens[row] == t;
        if (wanted) FillRow(kv, step, s, t, position, row++);
      }
    }
    Check(row == step.logit_rows, "logit tokens are in order");
    return Logits(step);
  }
  Tensor Logits(const StepInput& step) const override {
    return Tensor::Of(const_cast<float*>(logits_.data()), DType::kF32,
                      {step.logit_rows, config_.vocab});
  }

 private:
  static std::byte* At(const ashlar_kv_view& view, int64_t slot, int head) {
    return static_cast<std::byte*>(view.base) + slot / view.block_tokens * view.block_stride +
           head * view.head_stride + slot % view.block_tokens * view.token_stride;
  }
  static uint64_t Read(const LayerKv& layer, const StepInput& step, int sequence, int position) {
    const GroupStep& group = step.groups[layer.group];
    int64_t entry = position / layer.view.block_tokens;
    Check(entry < group.table_stride, "the block table reaches the position");
    int64_t block = group.block_table[sequence * group.table_stride + entry];
    int64_t slot = block * layer.view.block_tokens + position % layer.view.block_tokens;
    uint64_t first = 0;
    for (int head = 0; head < layer.view.kv_heads; ++head) {
      uint64_t value;
      std::memcpy(&value, At(layer.view, slot, head), sizeof value);
      value -= static_cast<uint64_t>(head);
      if (head == 0) first = value;
      if (value != first) return 0;  // torn: the answer goes wrong
    }
    return first;
  }

  void Write(const std::vector<LayerKv>& kv, size_t index, const StepInput& step, int sequence,
             int token, int position) const {
    const LayerKv& layer = kv[index];
    int window = config_.layers[index].window;
    uint64_t before = position > 0 && window != 1 ? Read(layer, step, sequence, position - 1) : 1;
    uint64_t value = Mix(before + index, static_cast<uint64_t>(step.ids[token]));
    int64_t slot = step.groups[layer.group].slots[token];
    for (int head = 0; head < layer.view.kv_heads; ++head) {
      uint64_t stored = value + static_cast<uint64_t>(head);
      std::memcpy(At(layer.view, slot, head), &stored, sizeof stored);
    }
  }

  void FillRow(const std::vector<LayerKv>& kv, const StepInput& step, int sequence, int token,
               int position, int row) {
    uint64_t seen = 7;
    for (size_t layer = 0; layer < kv.size(); ++layer) {
      int window = config_.layers[layer].window;
      int first = window > 0 ? std::max(0, position - window + 1) : 0;
      if (hooks_.light) first = position;
      for (int p = first; p <= position; ++p) seen = Mix(seen, Read(kv[layer], step, sequence, p));
    }
    std::span<float> out(logits_.data() + row * config_.vocab, static_cast<size_t>(config_.vocab));
    for (size_t v = 0; v < out.size(); ++v) {
      out[v] = static_cast<float>(Mix(seen, v) >> 40) * (6.0f / 16777216.0f);
    }
    if (hooks_.row) hooks_.row(out, step.ids[token]);
  }

  ModelConfig config_;
  Hooks hooks_;
  std::vector<float> logits_;
};

}  // namespace ashlar::toy
